package doctor

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

// patient is what checks find out for each other. A field is written by one check, before it ends, and read by those that need it.
type patient struct {
	cfg Config // immutable

	// Of conf.
	conf   *hconf.Conf
	fs     hconf.FileSystem
	rms    []hconf.RM
	secure bool

	krb  *krb.Conf          // of krb5
	kdcs []verdict.KDC      // of kdc
	id   *identity.Identity // of credentials
	name string             // of credentials: who we are to Kerberos, or to a cluster without it

	kafka []reached // of kafka
}

// Names of checks.
const (
	checkConf        = "conf"
	checkKrb5        = "krb5"
	checkKDC         = "kdc"
	checkClock       = "clock"
	checkCredentials = "credentials"
	checkLogin       = "login"
	checkDNS         = "dns"
	checkNameNode    = "namenode"
	checkHTTP        = "hdfs-http"
	checkWeb         = "resourcemanager"
	checkRPC         = "resourcemanager-rpc"
	checkQueue       = "queue"
	checkLabel       = "label"
	checkContainer   = "container"
	checkStaging     = "staging"
	checkPaths       = "paths"
	checkTokens      = "tokens"
	checkKafka       = "kafka"
	checkListeners   = "kafka-listeners"
	checkTopics      = "kafka-topics"
	checkGroups      = "kafka-groups"
	checkKafkaTokens = "kafka-tokens"
	checkRegistry    = "schema-registry"
	checkCollector   = "collector"
)

// checks are all there are, in the order in which they are told.
func (p *patient) checks() []check {
	return []check{
		{name: checkConf, title: "Hadoop's configuration", run: p.readConf},
		{name: checkKrb5, title: "Kerberos's configuration", needs: []string{checkConf}, run: p.readKrb5},
		{name: checkCredentials, title: "credentials", needs: []string{checkConf}, after: []string{checkKrb5}, run: p.openLogin},
		{name: checkKDC, title: "KDC", needs: []string{checkKrb5}, after: []string{checkCredentials}, run: p.askKDCs},
		{name: checkClock, title: "clock", needs: []string{checkKDC}, run: p.judgeClock},
		{name: checkLogin, title: "login", needs: []string{checkCredentials, checkKDC}, wants: []string{checkClock}, run: p.logIn},
		{name: checkDNS, title: "names of the servers", needs: []string{checkConf}, run: p.lookUp},
		{name: checkNameNode, title: "NameNode", needs: []string{checkConf, checkCredentials}, wants: []string{checkLogin}, run: p.askNameNodes},
		{name: checkHTTP, title: "HDFS over HTTP", needs: []string{checkConf, checkCredentials}, wants: []string{checkLogin}, after: []string{checkNameNode}, run: p.askHTTP},
		{name: checkWeb, title: "ResourceManager, web service", needs: []string{checkConf, checkCredentials}, wants: []string{checkLogin}, run: p.askWeb},
		{name: checkRPC, title: "ResourceManager, RPC", needs: []string{checkWeb}, run: p.askRPC},
		{name: checkQueue, title: "queue", needs: []string{checkWeb, checkRPC}, run: p.askQueue},
		{name: checkLabel, title: "node label", needs: []string{checkWeb, checkRPC}, run: p.askLabel},
		{name: checkContainer, title: "largest container", needs: []string{checkWeb, checkRPC}, run: p.askContainer},
		{name: checkStaging, title: "staging folder", needs: []string{checkNameNode}, wants: []string{checkHTTP}, slow: 2, run: p.writeStaging},
		{name: checkPaths, title: "paths of the job", needs: []string{checkNameNode}, wants: []string{checkHTTP}, run: p.askPaths},
		{name: checkTokens, title: "delegation tokens", needs: []string{checkNameNode, checkWeb, checkRPC}, wants: []string{checkHTTP}, slow: 2, run: p.fetchTokens},
		{name: checkKafka, title: "Kafka", run: p.askKafka},
		{name: checkListeners, title: "Kafka's advertised names", needs: []string{checkKafka}, run: p.askListeners},
		{name: checkTopics, title: "topics", needs: []string{checkKafka}, run: p.askTopics},
		{name: checkGroups, title: "consumer groups", needs: []string{checkKafka}, run: p.askGroups},
		{name: checkKafkaTokens, title: "Kafka's delegation tokens", needs: []string{checkKafka}, wants: []string{checkListeners}, run: p.askKafkaTokens},
		{name: checkRegistry, title: "schema registry", run: p.askRegistry},
		{name: checkCollector, title: "traces and metrics", run: p.askCollector},
	}
}

// needed are the job's needs of a kind.
func (p *patient) needed(kind flow.NeedKind) (out []flow.Need) {
	for _, n := range p.cfg.Needs {
		if n.Kind == kind && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
