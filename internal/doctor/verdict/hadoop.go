package verdict

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/report"
)

// Conf judges Hadoop's configuration. err is what reading it, or the address of one of its services, came to.
func Conf(dir, from string, fsys hconf.FileSystem, managers int, kerberos bool, err error) Verdict {
	const fix = "set HADOOP_CONF_DIR, or --yarn.conf-dir, to the folder with the cluster's core-site.xml, hdfs-site.xml and yarn-site.xml"
	if key, ok := errors.AsType[*hconf.KeyError](err); ok {
		return fail("conf-value", fmt.Sprintf("mend %s in %s", key.Key, key.File), "%v", err)
	}
	switch {
	case err != nil && strings.Contains(err.Error(), "no such file"):
		return fail("conf-missing", fix, "%v", err)
	case err != nil && strings.Contains(err.Error(), "fs.defaultFS"):
		return fail("conf-value", "set fs.defaultFS in core-site.xml to the cluster's hdfs: address", "%v", err)
	case err != nil && (strings.Contains(err.Error(), "XML") || strings.Contains(err.Error(), "parse") || strings.Contains(err.Error(), "syntax")):
		return fail("conf-broken", "get the file anew from the cluster's administrators", "%v", err)
	case err != nil && dir == "":
		return fail("conf-missing", fix, "%v", err)
	case err != nil:
		return fail("conf-broken", fix, "%v", err)
	}
	security := "no security"
	if kerberos {
		security = "Kerberos"
	}
	return pass("%s (by %s): %s with %s, %s, %s", dir, from, fsys.URI, count(len(fsys.NameNodes), "NameNode"), count(managers, "ResourceManager"), security)
}

// Server is what came of asking a NameNode or a ResourceManager.
type Server struct {
	Addr    string
	Active  bool
	Standby bool
	State   string // in its own words, if it told
	Err     error
}

// NameNodes judges the servers of a file system. wants are the qualities of protection that hadoop.rpc.protection allows here.
func NameNodes(uri string, all []Server, wants []string, secure bool) Verdict {
	var vs []Verdict
	active, standby := "", 0
	for _, s := range all {
		switch {
		case s.Err != nil:
			vs = append(vs, rpcTrouble("NameNode", s, "fs.defaultFS, or dfs.namenode.rpc-address", wants))
		case s.Standby:
			standby++
		default:
			active = s.Addr
		}
	}
	how := "by its word"
	if secure {
		how = "proven, protected by " + strings.Join(wants, " or ")
	}
	if active != "" {
		good := pass("%s: %s is active, %s", uri, active, how)
		if standby > 0 {
			good.Means += fmt.Sprintf(", %d on standby", standby)
		}
		for i := range vs { // one that works is enough
			if vs[i].Status == Fail {
				vs[i].Status = Warn
			}
		}
		return All(append(vs, good))
	}
	if standby > 0 {
		vs = append(vs, fail("nn-standby", "have one of them made active (hdfs haadmin -failover, -transitionToActive), or its failover controller looked after",
			"%s has no active NameNode: %s on standby", uri, count(standby, "one")))
		return first(vs, "nn-standby")
	}
	return All(vs)
}

// first puts the verdict with a diagnosis before the others.
func first(vs []Verdict, diagnosis string) Verdict {
	for i, v := range vs {
		if v.Diagnosis == diagnosis {
			vs[0], vs[i] = vs[i], vs[0]
		}
	}
	return All(vs)
}

// rpcTrouble judges an error of Hadoop's RPC.
func rpcTrouble(what string, s Server, key string, wants []string) Verdict {
	prefix := "rm-rpc"
	if what == "NameNode" {
		prefix = "nn"
	}
	text := fmt.Sprintf("%s %s: %v", what, s.Addr, s.Err)
	class := hrpc.ClassOf(s.Err)
	low := strings.ToLower(s.Err.Error())
	if v, ok := serviceTicket(s.Err); ok {
		return v
	}
	_, auth := errors.AsType[*hrpc.AuthError](s.Err)
	switch {
	case strings.Contains(low, "protection"):
		return fail(prefix+"-protection", fmt.Sprintf("compare hadoop.rpc.protection in core-site.xml here (which allows %s) with the server's", strings.Join(wants, ", ")), "%s", text)
	case strings.Contains(low, "should be"), strings.Contains(low, "it is "+"nn/") && auth:
		return fail(prefix+"-principal", "another server answers at this address, or DNS and Hadoop's configuration disagree about its name", "%s", text)
	case auth:
		return fail(prefix+"-auth", "compare hadoop.security.authentication here with the cluster's, and the principals in the configuration", "%s", text)
	case class == hrpc.ClassAccessControl, class == hrpc.ClassAuthorization:
		return fail(prefix+"-denied", "ask for the right to use the service (hadoop-policy.xml, or a policy of Ranger's); on a cluster with Kerberos, set hadoop.security.authentication to kerberos", "%s", text)
	case class == hrpc.ClassInvalidToken:
		return fail("token-refused", "get fresh tokens, or log in by a ticket or keytab", "%s", text)
	case class != "" && class != hrpc.ClassStandby && class != hrpc.ClassRetriable:
		return fail(prefix+"-refused", "ask the cluster's administrators, with this text", "%s", text)
	case strings.Contains(low, "no such host"):
		return fail("dns-forward", "mend the name in Hadoop's configuration, or have it put into DNS or /etc/hosts", "%s", text)
	}
	return fail(prefix+"-unreachable", fmt.Sprintf("check %s in Hadoop's configuration, that the %s runs, and that its port can be reached from here", key, what), "%s", text)
}

// serviceTicket judges an error if it is that there is no ticket for a service.
func serviceTicket(err error) (Verdict, bool) {
	v := Ticket("", time.Time{}, time.Time{}, err, time.Time{})
	if v.Diagnosis == "" || v.Diagnosis == "login-failed" || v.Diagnosis == "ticket-expired" && !strings.Contains(err.Error(), "Kerberos") {
		return Verdict{}, false
	}
	return v, true
}

// Web judges the ResourceManagers' web services.
func Web(all []Server, secure bool) Verdict {
	var vs []Verdict
	active := ""
	var standby []string
	for _, s := range all {
		switch {
		case s.Err != nil:
			vs = append(vs, webTrouble(s, secure))
		case s.Standby:
			standby = append(standby, s.Addr)
		default:
			active = s.Addr
		}
	}
	switch {
	case active != "":
		good := pass("%s is active", active)
		if secure {
			good.Means += ", and takes our proof (SPNEGO)"
		}
		if len(standby) > 0 {
			good.Means += fmt.Sprintf(", %s on standby", strings.Join(standby, ", "))
		}
		for i := range vs {
			if vs[i].Status == Fail {
				vs[i].Status = Warn
			}
		}
		return All(append(vs, good))
	case len(standby) > 0:
		vs = append(vs, fail("rm-standby", "have one of them made active (yarn rmadmin -getAllServiceState, -transitionToActive), or their ZooKeeper looked after",
			"no ResourceManager is active: %s on standby", strings.Join(standby, ", ")))
		return first(vs, "rm-standby")
	}
	return All(vs)
}

func webTrouble(s Server, secure bool) Verdict {
	text := fmt.Sprintf("%s: %v", s.Addr, s.Err)
	if e, ok := errors.AsType[*ssl.Error](s.Err); ok {
		return fail("tls-untrusted", e.Fix, "%s", text)
	}
	low := strings.ToLower(s.Err.Error())
	if v, ok := serviceTicket(s.Err); ok {
		return v
	}
	switch {
	case strings.Contains(low, "x509") || strings.Contains(low, "tls:"):
		return fail("tls-untrusted", "name the store with the cluster's authority by ssl.client.truststore.location in ssl-client.xml", "%s", text)
	case yarnclient.IsDenied(s.Err):
		d := fail("rm-web-denied", "the web service takes another proof than ours: compare hadoop.http.authentication.type with what the cluster has; RPC may do (yarn.client: rpc)", "%s", text)
		if !secure {
			d.Fix = "the cluster demands a proof: set hadoop.security.authentication to kerberos in core-site.xml, as the cluster has it"
		}
		d.Status = Warn
		return d
	case yarnclient.IsRefused(s.Err), strings.Contains(low, "malformed http"):
		return Verdict{Warn, "rm-web-other", text, "check yarn.resourcemanager.webapp.address: another service answers there, or it speaks TLS (compare yarn.http.policy with what the cluster has); RPC may do (yarn.client: rpc)"}
	case strings.Contains(low, "no such host"):
		return fail("dns-forward", "mend the name in Hadoop's configuration, or have it put into DNS or /etc/hosts", "%s", text)
	}
	return fail("rm-unreachable", "check yarn.resourcemanager.webapp.address (or .hostname) of Hadoop's configuration, that the ResourceManager runs, and that its port can be reached from here", "%s", text)
}

// ManagerRPC judges the ResourceManagers' RPC for clients. webWorks says that their web service does, so that RPC is needed only where that refuses.
func ManagerRPC(addrs []string, err error, wants []string, webWorks bool) Verdict {
	if err == nil {
		return pass("%s answers", strings.Join(addrs, " or "))
	}
	v := rpcTrouble("ResourceManager", Server{Addr: strings.Join(addrs, ", "), Err: err}, "yarn.resourcemanager.address", wants)
	if v.Diagnosis == "rm-rpc-unreachable" && webWorks {
		v.Status, v.Fix = Warn, "have the port opened (8032 by default): what REST can't carry goes by RPC"
	}
	return v
}

// QueueFacts are what is known of the queue that a job is to run in.
type QueueFacts struct {
	Name      string // as the option has it; "": the cluster's rules choose
	Scheduler report.Scheduler
	Access    []yarnclient.QueueAccess
	AccessErr error // why access is not known
	User      string
}

// Queue judges it.
func Queue(f QueueFacts) Verdict {
	open := openQueues(f)
	if f.Name == "" {
		if f.AccessErr == nil && len(f.Access) > 0 && len(open) == 0 {
			return fail("queue-denied", "ask for the right to submit to a queue", "%s may submit to no queue", f.User)
		}
		return pass("none is named, so that the cluster's rules choose (--queue names one); %s may submit to %s", f.User, listed(open))
	}
	q, ok := report.Find(f.Scheduler.Queues, f.Name)
	switch {
	case !ok:
		return fail("queue-unknown", "name one that there is (heddle queues) by --queue", "the cluster has no queue %s; %s may submit to %s", f.Name, f.User, listed(open))
	case !q.Leaf:
		return fail("queue-parent", "name a queue below it (heddle queues)", "queue %s has queues below it, and takes no applications itself", q.Path)
	case q.State != "" && q.State != "RUNNING":
		return fail("queue-stopped", "name another queue, or have it started", "queue %s is %s", q.Path, q.State)
	case f.AccessErr != nil:
		return Verdict{Warn, "queue-access-unknown", fmt.Sprintf("queue %s runs; whether %s may submit is not known: %v", q.Path, f.User, f.AccessErr), "the ResourceManager tells it by RPC alone: mend that first"}
	}
	for _, a := range f.Access {
		if a.Submit && (a.Queue == q.Path || !strings.Contains(a.Queue, ".") && strings.HasSuffix(q.Path, "."+a.Queue)) {
			return pass("queue %s runs, and %s may submit", q.Path, f.User)
		}
	}
	return fail("queue-denied", fmt.Sprintf("ask for %s to be put into acl_submit_applications of %s, or into a policy of Ranger's; or name another queue by --queue", f.User, q.Path),
		"%s may not submit to queue %s, but to %s", f.User, q.Path, listed(open))
}

// openQueues are the leaves that we may submit to.
func openQueues(f QueueFacts) (out []string) {
	for _, q := range f.Scheduler.Queues {
		for _, a := range f.Access {
			if q.Leaf && a.Submit && (a.Queue == q.Path || strings.HasSuffix(q.Path, "."+a.Queue)) {
				out = append(out, q.Path)
				break
			}
		}
	}
	return out
}

func listed(names []string) string {
	switch {
	case len(names) == 0:
		return "none that is known"
	case len(names) > 6:
		return strings.Join(names[:6], ", ") + fmt.Sprintf(" and %d more", len(names)-6)
	}
	return strings.Join(names, ", ")
}

// Label judges a node label.
func Label(label, queue string, have []string, sched report.Scheduler, nodes []report.Node) Verdict {
	if label == "" {
		return pass("none is asked for")
	}
	if !contains(have, label) {
		return fail("label-unknown", "name another by --yarn.node-label, or unset it: heddle nodes shows what labels nodes have", "the cluster has no node label %s, but %s", label, listed(have))
	}
	if q, ok := report.Find(sched.Queues, queue); ok && !q.Accesses(label) {
		return fail("label-denied", "name another queue, or have accessible-node-labels of this one widened", "applications of queue %s may not use nodes of label %s", q.Path, label)
	}
	n := 0
	for _, x := range nodes {
		if x.HasLabel(label) && x.State == "RUNNING" {
			n++
		}
	}
	if n == 0 && len(nodes) > 0 {
		return fail("label-empty", "name another label, or wait for nodes to come back: heddle nodes", "no node of label %s runs", label)
	}
	return pass("%s of label %s", count(n, "node"), label)
}

// Container judges whether the containers of a job fit. err is why not.
func Container(largest report.Resource, err error, fix string) Verdict {
	if err != nil {
		return fail("container-large", fix, "%v", err)
	}
	return pass("the largest has %v; those of this configuration fit", largest)
}

// Steps of the probe of the staging folder.
const (
	StepConnect = "connect"
	StepWrite   = "write"
	StepRead    = "read back"
	StepRemove  = "remove"
)

// Staging judges the probe of the staging folder: step is the one that failed with err.
func Staging(dir, user, step string, err error, q hdfs.QuotaUsage) Verdict {
	if err == nil {
		text := dir + ": written, read back, and removed"
		if q.SpaceQuota > 0 {
			text += fmt.Sprintf("; %d of %d MB of its quota are used", q.Space>>20, q.SpaceQuota>>20)
		}
		if q.NamesQuota > 0 {
			text += fmt.Sprintf("; %d of %d names", q.Names, q.NamesQuota)
		}
		if q.SpaceQuota > 0 && q.Space > q.SpaceQuota/10*9 || q.NamesQuota > 0 && q.Names > q.NamesQuota/10*9 {
			return Verdict{Warn, "quota-short", text, "remove files (heddle gc), or have the quota raised"}
		}
		return pass("%s", text)
	}
	return hdfsTrouble("staging", fmt.Sprintf("cannot %s in %s: %v", step, dir, err), user, err)
}

// hdfsTrouble judges an error of HDFS.
func hdfsTrouble(prefix, text, user string, err error) Verdict {
	fix := hdfs.Advice(err, user)
	if v, ok := serviceTicket(err); ok {
		return v
	}
	switch hdfs.TroubleOf(err) {
	case hdfs.Denied:
		return fail(prefix+"-denied", fix, "%s", text)
	case hdfs.SafeMode:
		return fail("nn-safe-mode", fix, "%s", text)
	case hdfs.Quota:
		return fail("quota-full", fix, "%s", text)
	case hdfs.NoSpace:
		return fail("datanodes", fix, "%s", text)
	case hdfs.Encoded, hdfs.Sealed:
		return fail(prefix+"-encoded", fix, "%s", text)
	case hdfs.NotFound:
		return fail(prefix+"-missing", fix, "%s", text)
	case hdfs.Unreachable:
		return fail(prefix+"-unreachable", fix, "%s", text)
	}
	if strings.Contains(strings.ToLower(err.Error()), "protection") {
		return fail("data-protection", "compare dfs.data.transfer.protection in hdfs-site.xml here with the cluster's", "%s", text)
	}
	return fail(prefix+"-failed", "ask the cluster's administrators, with this text", "%s", text)
}

// Path is what came of asking about a path that a job uses.
type Path struct {
	Name    string
	Want    hdfs.Access
	Made    bool // it is there, or what it is made in allows it
	Err     error
	Unknown string // why it was not asked about
}

// Paths judges the paths of a job in HDFS.
func Paths(all []Path, user string) Verdict {
	var vs []Verdict
	for _, p := range all {
		switch {
		case p.Err == nil:
			vs = append(vs, pass("%s %v", p.Name, p.Want))
		case hdfs.TroubleOf(p.Err) == hdfs.NotFound:
			vs = append(vs, fail("path-missing", "check the path in the job, or have it made", "there is no %s", p.Name))
		case hdfs.TroubleOf(p.Err) == hdfs.Denied:
			vs = append(vs, fail("path-denied", fmt.Sprintf("ask for it: heddle plan --grants lists what %s needs, also for Ranger", user), "%s may not have %v access to %s", user, p.Want, p.Name))
		default:
			vs = append(vs, hdfsTrouble("path", fmt.Sprintf("%s: %v", p.Name, p.Err), user, p.Err))
		}
	}
	return All(vs)
}

// Tokens judges the fetching and renewing of delegation tokens.
type Tokens struct {
	Fetched  int
	Until    time.Time // that they were renewed to
	FetchErr error
	RenewErr error
	Keyless  error // why key servers gave no tokens of theirs
	ByTokens bool  // we have tokens alone, and get no others
	Keytab   bool
}

// Judge is the verdict on them.
func (t Tokens) Judge(now time.Time) Verdict {
	switch {
	case t.FetchErr != nil && hdfs.TroubleOf(t.FetchErr) == hdfs.SafeMode:
		return Skip("needs the NameNode to leave its safe mode, in which it gives no tokens")
	case t.FetchErr != nil:
		if v, ok := serviceTicket(t.FetchErr); ok {
			return v
		}
		if strings.Contains(t.FetchErr.Error(), "yarn.resourcemanager.principal") {
			return fail("token-renewer", "set yarn.resourcemanager.principal in yarn-site.xml, as the cluster has it", "%v", t.FetchErr)
		}
		return fail("token-fetch", "delegation tokens are given to those only who logged in by Kerberos: check that the server runs with security, and what it says in its log", "%v", t.FetchErr)
	case t.RenewErr != nil:
		return fail("token-renew", "without renewal a job ends with its first tokens: look into the NameNode's log why it refuses", "%v", t.RenewErr)
	case t.Keyless != nil:
		return warn("token-keys", "see that the key server (KMS) runs and can be reached from here, and what its log says; jobs run that have nothing in encryption zones", "%v", t.Keyless)
	case t.ByTokens:
		return Verdict{Warn, "token-only", "there are delegation tokens alone, which are handed on as they are", "log in by a ticket or a keytab to get fresh ones; a job lives as long as these tokens"}
	}
	text := fmt.Sprintf("%s fetched, renewed for %v, and cancelled", count(t.Fetched, "token"), t.Until.Sub(now).Round(time.Minute))
	if !t.Keytab {
		text += "; without a keytab a job lives as long as they can be renewed, 7 days by Hadoop's default"
	}
	return pass("%s", text)
}
