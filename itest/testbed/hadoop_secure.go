package testbed

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

// HadoopPrincipals are those that a secure cluster needs of its KDC. The user hdfs owns HDFS, the user yarn administers YARN, gateway may act for alice.
func HadoopPrincipals(nodeManagers int) []string {
	ps := []string{"nn/localhost", "dn/localhost", "rm/localhost", "nm/localhost", "HTTP/localhost", "hdfs", "yarn", "gateway"}
	for i := range nodeManagers + 1 {
		ps = append(ps, fmt.Sprintf("HTTP/127.0.0.%d", i+1))
	}
	return ps
}

// krb5 tells a JVM of the realm.
func (h *Hadoop) krb5() string {
	if h.kdc == nil {
		return "-Dheddle.itest=true"
	}
	return "-Djava.security.krb5.conf=" + h.kdc.Conf
}

// secure makes the configuration one that demands Kerberos, and writes the daemons' keytabs.
func (h *Hadoop) secure(opt HadoopOptions, core, hdfs, yarn properties) {
	k := h.kdc
	n := opt.NodeManagers
	var web []string
	for _, p := range HadoopPrincipals(n) {
		if strings.HasPrefix(p, "HTTP/") {
			web = append(web, p)
		}
	}
	keytab := func(p string) string { return k.Keytab(p+".keytab", false, p+"/localhost") }
	httpKeytab := k.Keytab("http.keytab", false, web...)
	principal := func(p, host string) string { return p + "/" + host + "@" + k.Realm }
	secret := h.bed.File("hadoop/http-secret", rand.Text())
	maps.Copy(core, properties{
		"hadoop.security.authentication": "kerberos", "hadoop.security.authorization": "true",
		"hadoop.user.group.static.mapping.overrides": "dr.who=;alice=users;bob=users;carol=;gateway=;nn=supergroup;hdfs=supergroup;dn=supergroup;rm=hadoop;nm=hadoop;yarn=hadoop;HTTP=",
		"hadoop.http.filter.initializers":            "org.apache.hadoop.security.AuthenticationFilterInitializer",
		"hadoop.http.authentication.type":            "kerberos", "hadoop.http.authentication.simple.anonymous.allowed": "false",
		"hadoop.http.authentication.kerberos.principal": "*", "hadoop.http.authentication.kerberos.keytab": httpKeytab,
		"hadoop.http.authentication.signature.secret.file": secret,
		"hadoop.proxyuser.HTTP.hosts":                      "*", "hadoop.proxyuser.HTTP.groups": "*",
		"hadoop.proxyuser.gateway.hosts": "*", "hadoop.proxyuser.gateway.users": "alice",
		"hadoop.proxyuser.rm.hosts": "*", "hadoop.proxyuser.rm.groups": "*",
		"hadoop.security.auth_to_local": "RULE:[2:$1@$0](.*@" + k.Realm + ")s/@.*// DEFAULT",
	})
	maps.Copy(hdfs, properties{
		"dfs.block.access.token.enable": "true", "dfs.permissions.superusergroup": "supergroup", "ignore.secure.ports.for.testing": "true",
		"dfs.namenode.kerberos.principal": principal("nn", "_HOST"), "dfs.namenode.keytab.file": keytab("nn"),
		"dfs.datanode.kerberos.principal": principal("dn", "localhost"), "dfs.datanode.keytab.file": keytab("dn"),
		"dfs.web.authentication.kerberos.principal": "*", "dfs.web.authentication.kerberos.keytab": httpKeytab,
	})
	if opt.DataTransfer != "" {
		hdfs["dfs.data.transfer.protection"] = opt.DataTransfer
	}
	maps.Copy(yarn, properties{
		"yarn.resourcemanager.principal": principal("rm", "_HOST"), "yarn.resourcemanager.keytab": keytab("rm"),
		"yarn.resourcemanager.webapp.spnego-principal": "*", "yarn.resourcemanager.webapp.spnego-keytab-file": httpKeytab,
		"yarn.resourcemanager.webapp.delegation-token-auth-filter.enabled": "true",
		"yarn.nodemanager.principal":                                       principal("nm", "localhost"), "yarn.nodemanager.keytab": keytab("nm"),
		"yarn.nodemanager.webapp.spnego-principal": "*", "yarn.nodemanager.webapp.spnego-keytab-file": httpKeytab,
		"yarn.log-aggregation-enable": "false", // tests look at logs where containers wrote them
	})
	h.asUser("yarn")
}

// Lib is the folder of Hadoop's jars.
func (h *Hadoop) Lib() string { return h.lib }

// Program runs a class that is in ConfDir as a user, with as good a JVM as any, and returns what it printed.
func (h *Hadoop) Program(user, class string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	line := append([]string{"-Xmx512m", "-Djava.net.preferIPv4Stack=true", "--add-opens", "java.base/java.lang=ALL-UNNAMED", h.krb5(), // without the limits of daemons
		"-cp", h.ConfDir + ":" + filepath.Join(h.lib, "*"), class}, args...)
	cmd := exec.CommandContext(ctx, "java", line...)
	cmd.Env = append(os.Environ(), h.env(user)...)
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		return says.String(), fmt.Errorf("cannot run %s: %w", class, err)
	}
	return string(out), nil
}

// Reconfigure kills a daemon and starts it again with other properties, -Dname=value each.
func (h *Hadoop) Reconfigure(name string, properties ...string) {
	h.bed.t.Helper()
	h.Kill(name)
	d := h.daemons[name]
	d.args = append(d.args, properties...)
	h.launch(name)
	h.WaitReady()
}

// asUser lets the test's own requests to web services be a user's.
func (h *Hadoop) asUser(name string) {
	h.bed.t.Helper()
	l, err := krb.Open(krb.Config{Env: h.kdc.Lookup, Keytab: h.kdc.KeytabOf(name)})
	if err != nil {
		h.bed.t.Fatal(err)
	}
	h.http.Transport = &krb.Transport{Base: h.web, Login: l}
}

// cacheOf is a ticket cache of a user's, for Hadoop's own tools.
func (h *Hadoop) cacheOf(user string) string {
	file := filepath.Join(h.kdc.dir, user+".cc")
	if _, err := os.Stat(file); err != nil {
		h.kdc.Kinit("FILE:"+file, h.kdc.KeytabOf(user), user)
	}
	return "FILE:" + file
}

// Lookup is an environment that knows the realm's krb5.conf alone.
func (k *KDC) Lookup(name string) (string, bool) { return k.Conf, name == "KRB5_CONFIG" }

// KeytabOf returns the keytab of a user, written at the first call. Its keys are the KDC's as long as nobody else writes keytabs for the user.
func (k *KDC) KeytabOf(user string) string {
	k.bed.t.Helper()
	file := filepath.Join(k.dir, user+".keytab")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	return k.Keytab(user+".keytab", false, user)
}
