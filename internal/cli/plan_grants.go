package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/doctor"
	"github.com/heddle-stream/heddle/internal/doctor/grants"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// Formats of plan --grants.
const (
	grantsText   = "text"
	grantsJSON   = "json"
	grantsKafka  = "kafka-acls"
	grantsRanger = "ranger"
)

// showGrants lists what a job needs to be let to do. Nobody is asked: what Hadoop's configuration, keytab and ticket cache say is read, if they are there.
func (s *session) showGrants(job *heddle.Job, c *conf.Config, format string) error {
	in, err := s.grantsInput(job, c)
	if err != nil {
		return err
	}
	list := grants.List(in)
	kafkaUser := in.KafkaUser
	if kafkaUser == "" {
		kafkaUser = in.User
	}
	switch format {
	case grantsText:
		return s.printGrants(list)
	case grantsJSON:
		return s.out.json(list)
	case grantsKafka:
		for _, line := range grants.KafkaACLs(list, kafkaUser, strings.Join(c.List("kafka.brokers"), ",")) {
			if _, err := fmt.Fprintln(s.env.Stdout, line); err != nil {
				return err
			}
		}
		return nil
	case grantsRanger:
		return s.out.json(grants.Ranger(list, job.Name(), in.User, kafkaUser, grants.Services{HDFS: "cm_hdfs", YARN: "cm_yarn", Kafka: "cm_kafka"}))
	}
	return usage(fmt.Errorf("there is no format %q of grants", format), "it is text, json, kafka-acls or ranger")
}

func (s *session) printGrants(list []grants.Grant) error {
	var rows [][]string
	for _, g := range list {
		name := g.Name
		switch g.Match {
		case grants.Prefixed:
			name += "*"
		case grants.Below:
			name += " and below"
		}
		rows = append(rows, []string{string(g.Kind), name, dash(strings.Join(g.Ops, ",")), dash(g.Cluster), g.Why})
	}
	return s.out.table([]string{"KIND", "NAME", "NEEDS", "AT", "FOR"}, rows)
}

// grantsInput gathers who runs the job, and where.
func (s *session) grantsInput(job *heddle.Job, c *conf.Config) (grants.Input, error) {
	g, err := compile(job, c)
	if err != nil {
		return grants.Input{}, err
	}
	in := grants.Input{Needs: needsOf(job.Graph(), g), YARN: c.Text("target") == "yarn", Queue: c.Text("yarn.queue"), KafkaUser: c.Text("kafka.sasl.user")}
	for _, k := range s.withTokens(kafkaClusters(c, in.Needs), c) {
		if k.Err != nil { // what is secret, or left open, may be set when the job runs
			if k.Config.Brokers = kafka.SplitList(k.At); k.At == "" {
				k.Config.Brokers = c.List("kafka.brokers")
			}
		}
		if k.Config.SASL.User != "" { // of a properties file
			in.KafkaUser = k.Config.SASL.User
		}
		if p := k.Config.SASL.Kerberos.Principal; k.Config.SASL.Mechanism == "GSSAPI" && p != "" {
			in.KafkaUser, _, _ = strings.Cut(p, "@")
		}
		if k.Tokens != doctor.NoTokens {
			in.TokensAt = append(in.TokensAt, k.At)
		}
		for _, b := range k.Config.Brokers {
			in.Ports = append(in.Ports, port(b, "Kafka, and the brokers that it advertises: from the gateway and all nodes"))
		}
	}
	in.Registry = c.Text("schema-registry.kind")
	if slices.ContainsFunc(in.Needs, func(n flow.Need) bool { return n.Kind == flow.NeedSubject }) {
		for _, u := range c.List("schema-registry.urls") {
			in.Ports = append(in.Ports, port(u, "schema registry: from the gateway and all nodes"))
		}
	}
	in.User, _ = s.hadoopUser(c)
	set, err := s.telemetrySettings(c)
	if err != nil {
		return in, err
	}
	if set.Endpoint != "" {
		in.Ports = append(in.Ports, port(set.Endpoint, "traces and metrics: from the gateway and all nodes"))
	}
	if hadoop, _ := s.wantsHadoop(c, in.Needs); hadoop {
		return in, s.grantsOfHadoop(&in, c)
	}
	return in, nil
}

func port(name, why string) grants.Grant {
	return grants.Grant{Kind: grants.Port, Name: name, Match: grants.Literal, Ops: []string{"connect"}, Why: why}
}

// grantsOfHadoop adds what follows from Hadoop's configuration.
func (s *session) grantsOfHadoop(in *grants.Input, c *conf.Config) error {
	if _, _, err := hconf.FindDir(s.lookup); err != nil && c.Text("yarn.conf-dir") == "" {
		in.Staging = stagingRoot(c, in.User)
		fmt.Fprintln(s.env.Stderr, "heddle: warning: there is no configuration of Hadoop's here, so that the cluster's principals and ports are not listed: set HADOOP_CONF_DIR, or --yarn.conf-dir")
		return nil
	}
	hc, err := hconf.Load(hconf.Options{Dir: c.Text("yarn.conf-dir"), Env: s.lookup, User: in.User, Need: []string{"core-site.xml"}})
	if err != nil {
		return precondition(err, "set HADOOP_CONF_DIR, or --yarn.conf-dir, to the folder with the cluster's core-site.xml and yarn-site.xml")
	}
	if secure, err := hc.Kerberos(); err != nil {
		return precondition(err)
	} else if secure {
		s.grantsOfKerberos(in, hc, c)
	}
	if fs, err := hc.DefaultFS(); err == nil {
		in.HDFS = fs.URI
		for _, nn := range fs.NameNodes {
			in.Ports = append(in.Ports, port(nn, "NameNode: from the gateway and all nodes; DataNodes likewise (dfs.datanode.address)"))
		}
	} else if needsHDFS(in.Needs) || in.YARN {
		return precondition(err)
	}
	if !in.YARN {
		return nil
	}
	rms, err := hc.RMs()
	if err != nil {
		return precondition(err)
	}
	https, _ := hc.YARNOverHTTPS() // what is no boolean is told when the job runs
	for _, rm := range rms {
		web := rm.Web
		if https {
			web = rm.WebHTTPS
		}
		in.Ports = append(in.Ports, port(web, "ResourceManager's web service: from the gateway"), port(rm.Client, "ResourceManager's RPC: from the gateway"),
			port(rm.Scheduler, "ResourceManager's scheduler: from all nodes"))
	}
	for _, own := range []struct{ option, why string }{{"appmaster.port", "agents to the ApplicationMaster"}, {"web.port", "the ResourceManager's proxy to the ApplicationMaster"}, {"exchange.port", "agents to agents"}} {
		p := c.Text(own.option)
		if p == "0" {
			p = "any free port"
		}
		in.Ports = append(in.Ports, port(p+" ("+own.option+")", own.why+": between all nodes"))
	}
	in.Staging = stagingRoot(c, in.User)
	return nil
}

func needsHDFS(needs []flow.Need) bool {
	for _, n := range needs {
		if n.Kind == flow.NeedPath && strings.HasPrefix(n.Name, "hdfs://") {
			return true
		}
	}
	return false
}

// stagingRoot is where an application's files go in HDFS.
func stagingRoot(c *conf.Config, user string) string {
	dir := c.Text("yarn.staging-dir")
	if dir == "" {
		return "/user/" + user + "/.heddle"
	}
	if rest, ok := strings.CutPrefix(dir, "hdfs://"); ok {
		_, dir, _ = strings.Cut(rest, "/")
		dir = "/" + dir
	}
	return strings.TrimRight(dir, "/") + "/" + user
}

// grantsOfKerberos adds who logs in, and whom we speak to, as far as files of this host tell it.
func (s *session) grantsOfKerberos(in *grants.Input, hc *hconf.Conf, c *conf.Config) {
	kc, err := krb.LoadConf(s.lookup)
	if err != nil {
		in.Login = c.Text("kerberos.principal")
	} else if p, err := s.whoLogsIn(kc, c); err == nil {
		in.Login = p.String()
		if user, err := hc.ShortName(p.Parts, p.Realm, kc.DefaultRealm); err == nil {
			in.User = user
		}
		for _, k := range kc.KDCs[p.Realm] {
			in.Ports = append(in.Ports, port(k.Addr, "KDC, TCP and UDP: from the gateway, and with a keytab from all nodes"))
		}
	}
	if in.KafkaUser == "" {
		in.KafkaUser = in.User
	}
	for _, x := range []struct{ key, why string }{{"dfs.namenode.kerberos.principal", "is spoken to: the NameNode"},
		{"yarn.resourcemanager.principal", "is spoken to, and renews our delegation tokens: the ResourceManager"}} {
		if p, err := hc.String(x.key); err == nil && p != "" {
			in.Others = append(in.Others, grants.Grant{Kind: grants.Principal, Name: p, Match: grants.Literal, Why: x.why})
		}
	}
}

// whoLogsIn is the principal that the options, the keytab or the ticket cache name.
func (s *session) whoLogsIn(kc *krb.Conf, c *conf.Config) (krb.Principal, error) {
	if name := c.Text("kerberos.principal"); name != "" {
		p, err := krb.ParsePrincipal(name)
		if p.Realm == "" {
			p.Realm = kc.DefaultRealm
		}
		return p, err
	}
	if keytab := strings.TrimPrefix(c.Text("kerberos.keytab"), "FILE:"); keytab != "" {
		b, err := os.ReadFile(keytab)
		if err != nil {
			return krb.Principal{}, err
		}
		entries, err := krb.ParseKeytab(b)
		if err != nil || len(entries) == 0 {
			return krb.Principal{}, errors.Join(err, errors.New("the keytab has no key"))
		}
		return entries[0].Principal, nil
	}
	file, err := krb.CacheFile("", s.lookup, kc)
	if err != nil {
		return krb.Principal{}, err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return krb.Principal{}, err
	}
	cache, err := krb.ParseCache(b)
	if err != nil {
		return krb.Principal{}, err
	}
	return cache.Client, nil
}
