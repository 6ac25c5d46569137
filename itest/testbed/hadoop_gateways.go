package testbed

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// Gateways of a cluster.
const (
	KeyServer = "kms"    // with KeyServer; Hadoop's key management server
	HttpFS    = "httpfs" // with HttpFS
)

// httpFSVersion is the last release of which Maven has HttpFS. It serves clusters that are a little newer.
const httpFSVersion = "3.4.2"

// gateways configures the key server and HttpFS. They have configurations of their own, since Hadoop's filters for web pages are not for them.
func (h *Hadoop) gateways(t testing.TB, opt HadoopOptions, core, hdfs properties) {
	if !opt.KeyServer && !opt.HttpFS {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	jars := func(version string, names ...string) string {
		var as []Artifact
		for _, n := range names {
			as = append(as, Artifact("org.apache.hadoop:hadoop-"+n+":"+version))
		}
		lib, err := Jars(ctx, names[0], as...)
		if err != nil {
			t.Fatal(err)
		}
		return lib
	}
	at := func() string { return fmt.Sprintf("localhost:%d", FreePort(t)) }
	h.gatewayAt = map[string]string{}
	if opt.KeyServer {
		h.gatewayAt[KeyServer] = at()
		h.KeyProvider = "kms://http@" + h.gatewayAt[KeyServer] + "/kms"
		core["hadoop.security.key.provider.path"] = h.KeyProvider
	}
	maps.Copy(core, opt.Core)
	own := maps.Clone(core)
	delete(own, "hadoop.http.filter.initializers")
	if opt.KeyServer {
		h.keyServer(own, opt, jars(HadoopVersion, "kms"))
	}
	if opt.HttpFS {
		h.gatewayAt[HttpFS] = at()
		h.HttpFS = "http://" + h.gatewayAt[HttpFS] + "/webhdfs/v1"
		h.httpFS(own, hdfs, jars(httpFSVersion, "hdfs-httpfs", "hdfs-client"))
	}
}

func (h *Hadoop) keyServer(core properties, opt HadoopOptions, lib string) {
	const k, acl = "hadoop.kms.", "default.key.acl."
	_, port, _ := net.SplitHostPort(h.gatewayAt[KeyServer])
	site := properties{k + "http.host": "127.0.0.1", k + "http.port": port, k + "key.provider.uri": "jceks://file@" + filepath.Join(h.bed.Dir("hadoop/keys"), "keys.jceks"),
		k + "authentication.signer.secret.provider": "random"}
	for _, who := range []string{"HTTP", "dn"} { // HttpFS, and DataNodes that speak WebHDFS
		site[k+"proxyuser."+who+".hosts"], site[k+"proxyuser."+who+".groups"] = "*", "*"
	}
	if h.kdc != nil {
		maps.Copy(site, properties{k + "authentication.type": "kerberos", k + "authentication.kerberos.keytab": core["hadoop.http.authentication.kerberos.keytab"],
			k + "authentication.kerberos.principal": "*", k + "authentication.kerberos.name.rules": core["hadoop.security.auth_to_local"]})
	}
	maps.Copy(site, opt.KeyServerConf)
	dir := filepath.Dir(h.bed.File("hadoop/conf-kms/kms-site.xml", site.xml()))
	h.bed.File("hadoop/conf-kms/core-site.xml", core.xml())
	// The key "shut" is opened for nobody but the NameNode's administrator.
	h.bed.File("hadoop/conf-kms/kms-acls.xml", properties{acl + "MANAGEMENT": "*", acl + "GENERATE_EEK": "*", acl + "DECRYPT_EEK": "*", acl + "READ": "*",
		"key.acl.shut.ALL": "hdfs,nn", "key.acl.shut.DECRYPT_EEK": "hdfs", "key.acl.shut.GENERATE_EEK": "hdfs,nn"}.xml())
	h.daemons[KeyServer] = &daemon{class: "org.apache.hadoop.crypto.key.kms.server.KMSWebServer", user: "hdfs", conf: dir, lib: lib, jvm: []string{
		"-Dkms.config.dir=" + dir, "-Dkms.log.dir=" + h.dir, "-Dlog4j.configuration=file:" + filepath.Join(h.bed.Dir("hadoop/conf"), "log4j.properties")}}
}

func (h *Hadoop) httpFS(core, hdfs properties, lib string) {
	_, port, _ := net.SplitHostPort(h.gatewayAt[HttpFS])
	site := properties{"httpfs.http.hostname": "127.0.0.1", "httpfs.http.port": port, "httpfs.hostname": "localhost"}
	if h.kdc != nil {
		const a, f = "hadoop.http.authentication.", "httpfs.hadoop.authentication."
		principal, keytab := "HTTP/localhost@"+h.kdc.Realm, core[a+"kerberos.keytab"]
		maps.Copy(site, properties{a + "type": "kerberos", a + "kerberos.principal": "*", a + "kerberos.keytab": keytab, a + "kerberos.name.rules": core["hadoop.security.auth_to_local"],
			a + "signature.secret.file": core[a+"signature.secret.file"], f + "type": "kerberos", f + "kerberos.principal": principal, f + "kerberos.keytab": keytab})
	}
	dir := filepath.Dir(h.bed.File("hadoop/conf-httpfs/httpfs-site.xml", site.xml()))
	h.bed.File("hadoop/conf-httpfs/core-site.xml", core.xml())
	h.bed.File("hadoop/conf-httpfs/hdfs-site.xml", hdfs.xml())
	home := h.bed.Dir("hadoop/httpfs")
	h.daemons[HttpFS] = &daemon{class: "org.apache.hadoop.fs.http.server.HttpFSServerWebServer", user: "hdfs", conf: dir, lib: lib, jvm: []string{
		"-Dhttpfs.home.dir=" + home, "-Dhttpfs.config.dir=" + dir, "-Dhttpfs.log.dir=" + h.bed.Dir("hadoop/httpfs/log"), "-Dhttpfs.temp.dir=" + h.bed.Dir("hadoop/httpfs/temp")}}
}

// gatewaysReady returns nil when each that was not killed accepts connections.
func (h *Hadoop) gatewaysReady() error {
	for name, at := range h.gatewayAt {
		if d := h.daemons[name]; d == nil || d.killed {
			continue
		}
		c, err := net.DialTimeout("tcp", at, time.Second)
		if err != nil {
			return err
		}
		_ = c.Close()
	}
	return nil
}
