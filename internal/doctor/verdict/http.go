package verdict

import (
	"errors"
	"strings"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
)

// Statuses of HTTP.
const (
	unauthorized = 401
	forbidden    = 403
)

// HTTPOptions judges options by which HDFS can't be spoken to over HTTP.
func HTTPOptions(err error) Verdict {
	return fail("http-options", "set hdfs.http-uri to webhdfs or to the address of HttpFS or Knox, and hdfs.http-user with hdfs.http-password-file for Knox alone", "%v", err)
}

// HTTP judges the services by which HDFS is spoken to over HTTP. password: we log in there by one.
func HTTP(all []Server, password bool) Verdict {
	var vs []Verdict
	var good, standby []string
	for _, s := range all {
		switch {
		case s.Err != nil:
			vs = append(vs, httpTrouble(s, password))
		case s.Standby:
			standby = append(standby, s.Addr)
		default:
			good = append(good, s.Addr)
		}
	}
	if len(good) == 0 && len(standby) > 0 {
		vs = append(vs, fail("http-standby", "have one of the NameNodes made active (hdfs haadmin -getAllServiceState, -transitionToActive), or its failover controller looked after",
			"no NameNode is active: %s on standby", strings.Join(standby, ", ")))
		return first(vs, "http-standby")
	}
	if len(good) == 0 {
		return All(vs)
	}
	for i := range vs { // one that works is enough
		if vs[i].Status == Fail {
			vs[i].Status = Warn
		}
	}
	well := pass("%s answers, and takes our proof", strings.Join(good, ", "))
	if len(standby) > 0 {
		well.Means += ", " + strings.Join(standby, ", ") + " on standby"
	}
	return All(append(vs, well))
}

// httpTrouble judges why a service does not answer.
func httpTrouble(s Server, password bool) Verdict {
	text := s.Addr + ": " + s.Err.Error()
	if e, ok := errors.AsType[*ssl.Error](s.Err); ok {
		return fail("tls-untrusted", e.Fix, "%s", text)
	}
	if v, ok := serviceTicket(s.Err); ok {
		return v
	}
	low := strings.ToLower(s.Err.Error())
	class := hrpc.ClassOf(s.Err)
	status, answered := errors.AsType[*hrest.StatusError](s.Err)
	switch {
	case strings.Contains(low, "x509"), strings.Contains(low, "tls:"):
		return fail("tls-untrusted", "name the store with the service's authority by ssl.client.truststore.location in ssl-client.xml", "%s", text)
	case answered && status.Status == unauthorized && password:
		return fail("http-login", "compare hdfs.http-user, and what is in hdfs.http-password-file, with what the gateway knows", "%s", text)
	case answered && status.Status == unauthorized, strings.Contains(low, "neither a kerberos ticket nor"):
		return fail("http-login", "log in by a ticket (kinit) or a keytab; Knox wants hdfs.http-user and hdfs.http-password-file: a user and password, or Token and a token of its own", "%s", text)
	case answered && status.Status == forbidden, class != "" && hdfs.TroubleOf(s.Err) == hdfs.Denied, strings.HasSuffix(class, "AuthorizationException"), strings.HasSuffix(class, "SecurityException"), strings.HasSuffix(class, "AuthenticationException"):
		return fail("http-denied", "ask for the right to use the service (at Knox, a policy of Ranger's); a gateway needs hadoop.proxyuser.<its user>.hosts and .groups at the NameNode to act for us", "%s", text)
	case class != "":
		return fail("http-refused", "ask the cluster's administrators, with this text", "%s", text)
	case strings.Contains(low, "no such host"):
		return fail("dns-forward", "mend the name in hdfs.http-uri, or have it put into DNS or /etc/hosts", "%s", text)
	case answered, strings.Contains(low, "malformed http"), strings.Contains(low, "cannot read the answer"):
		return fail("http-strange", "compare the address and its path with the service's: HttpFS and NameNodes have /webhdfs/v1, Knox /gateway/<topology>/webhdfs/v1; look whether it is http or https", "%s", text)
	}
	return fail("http-unreachable", "check hdfs.http-uri (for webhdfs, dfs.namenode.http-address or https-address, and dfs.http.policy), that the service runs, and that its port can be reached from here", "%s", text)
}

// HTTPStaging judges how much of the staging folder is seen over HTTP, and how much by RPC.
func HTTPStaging(root, user, seen, byRPC string, err error) Verdict {
	switch {
	case err != nil:
		v := hdfsTrouble("http", "over HTTP: "+err.Error(), user, err)
		if hdfs.TroubleOf(err) == hdfs.Denied {
			v.Diagnosis = "http-staging-denied"
		}
		return v
	case len(seen) < len(byRPC):
		return fail("http-other", "name the service of the cluster that fs.defaultFS names: NodeManagers fetch by RPC what is stored over HTTP",
			"over HTTP there is no %s, and by RPC there is: another file system answers, or an old state of it", byRPC)
	case len(seen) > len(byRPC):
		return fail("http-other", "name the service of the cluster that fs.defaultFS names: NodeManagers fetch by RPC what is stored over HTTP",
			"over HTTP there is %s, and by RPC there is not: another file system answers", seen)
	case seen == root:
		return pass("%s is there", root)
	case seen == "/":
		return warn("http-staging", "look whether the service is of the right cluster; else have the folder made, and given to "+user, "over HTTP nothing is there of %s", root)
	}
	return pass("%s is there of %s", seen, root)
}
