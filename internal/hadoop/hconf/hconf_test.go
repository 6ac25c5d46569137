package hconf

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func environment(kv ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

func props(kv ...string) string {
	var b strings.Builder
	b.WriteString("<configuration>\n")
	for i := 0; i < len(kv); i += 2 {
		b.WriteString("<property><name>" + kv[i] + "</name><value>" + kv[i+1] + "</value></property>\n")
	}
	return b.String() + "</configuration>"
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, files map[string]string, env ...string) *Conf {
	t.Helper()
	c, err := Load(Options{Dir: folder(t, files), Env: environment(env...)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantString(t *testing.T, c *Conf, key, want string) {
	t.Helper()
	got, err := c.String(key)
	if err != nil || got != want {
		t.Errorf("%s = %q, %v; want %q", key, got, err, want)
	}
}

func TestFindDir(t *testing.T) {
	old := folder(t, map[string]string{"conf/hadoop-env.sh": ""})
	for _, x := range []struct {
		env       []string
		dir, from string
	}{
		{[]string{"HADOOP_CONF_DIR", "/h", "YARN_CONF_DIR", "/y"}, "/y", "YARN_CONF_DIR"},
		{[]string{"HADOOP_CONF_DIR", "/h", "YARN_CONF_DIR", ""}, "/h", "HADOOP_CONF_DIR"},
		{[]string{"HADOOP_HOME", "/opt/hadoop"}, "/opt/hadoop/etc/hadoop", "HADOOP_HOME"},
		{[]string{"HADOOP_HOME", old}, filepath.Join(old, "conf"), "HADOOP_HOME"},
	} {
		dir, from, err := FindDir(environment(x.env...))
		if dir != x.dir || from != x.from || err != nil {
			t.Errorf("%v: got %q %q %v, want %q %q", x.env, dir, from, err, x.dir, x.from)
		}
	}
	if _, err := Load(Options{Env: environment("HADOOP_CONF_DIR", "/nowhere/at/all")}); err == nil ||
		!strings.Contains(err.Error(), "/nowhere/at/all (from HADOOP_CONF_DIR)") {
		t.Errorf("missing folder: %v", err)
	}
}

func TestLayers(t *testing.T) {
	c := load(t, map[string]string{
		"core-site.xml": `<?xml version="1.0"?><!-- c --><configuration>
			<property><name> a </name><value> core </value><final>true</final></property>
			<property><name>a</name><value>later in the same file</value></property>
			<property name="attr" value="by attribute" final="true"/>
			<property><name>b</name><value>first</value><source>x</source><tag>y</tag></property>
			<property><name>c</name><value>kept</value></property>
			<property><name>fs.default.name</name><value>hdfs://old</value></property>
			<configuration><property><name>nested</name><value>1</value></property></configuration>
			<property><name>notfinal</name><value>1</value><final> true</final></property>
		</configuration>`,
		"yarn-site.xml": props("a", "yarn", "b", "second", "c", "", "attr", "no", "notfinal", "2", "yarn.resourcemanager.hostname", "master"),
	})
	for k, want := range map[string]string{
		"a": "core", "attr": "by attribute", "b": "second", "c": "kept", "nested": "1", "notfinal": "2",
		"fs.defaultFS": "hdfs://old", "fs.default.name": "hdfs://old",
		"yarn.resourcemanager.scheduler.address": "master:8030",
	} {
		wantString(t, c, k, want)
	}
	if v, _, _ := c.Lookup("a"); v != " core " {
		t.Errorf("Lookup trims: %q", v)
	}
	if o := c.Origin("b"); filepath.Base(o) != "yarn-site.xml" {
		t.Errorf("origin of b: %s", o)
	}
}

func TestInclude(t *testing.T) {
	c := load(t, map[string]string{
		"core-site.xml": `<configuration xmlns:xi="http://www.w3.org/2001/XInclude">
			<xi:include href="sub/more.xml"/>
			<xi:include href="absent.xml"><xi:fallback><property><name>fell</name><value>back</value></property></xi:fallback></xi:include>
			<xi:include href="there.xml"><xi:fallback><property><name>unused</name><value>1</value></property></xi:fallback></xi:include>
		</configuration>`,
		"sub/more.xml":   `<configuration><include href="deeper.xml"/></configuration>`,
		"sub/deeper.xml": props("deep", "yes"),
		"there.xml":      props("there", "yes"),
	})
	for k, want := range map[string]string{"deep": "yes", "fell": "back", "there": "yes", "unused": ""} {
		wantString(t, c, k, want)
	}
}

func TestBrokenFiles(t *testing.T) {
	for name, x := range map[string]struct{ text, want string }{
		"truncated":    {"<configuration><property><name>k</name><value>v", "core-site.xml, property k"},
		"other root":   {"<conf/>", "core-site.xml: its top element is <conf>"},
		"empty":        {"", "core-site.xml: there is no <configuration>"},
		"no include":   {`<configuration><include href="x.xml"/></configuration>`, `cannot read "x.xml", which`},
		"url":          {`<configuration><include href="http://h/x.xml"/></configuration>`, "not http: URLs"},
		"loop":         {`<configuration><include href="core-site.xml"/></configuration>`, "include each other"},
		"entity":       {`<!DOCTYPE c [<!ENTITY e SYSTEM "file:///etc/passwd">]><configuration><property><name>k</name><value>&e;</value></property></configuration>`, "entity"},
		"second root":  {"<configuration/><configuration/>", "follows the end"},
		"deep nesting": {strings.Repeat("<configuration>", 40), "levels"},
	} {
		_, err := Load(Options{Dir: folder(t, map[string]string{"core-site.xml": x.text}), Env: environment()})
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, x.want)
		}
	}
	_, err := Load(Options{Dir: t.TempDir(), Env: environment(), Need: []string{"yarn-site.xml"}})
	if err == nil || !strings.Contains(err.Error(), "yarn-site.xml") {
		t.Errorf("missing file: %v", err)
	}
}

func TestExpand(t *testing.T) {
	c := load(t, map[string]string{"core-site.xml": props(
		"one", "1", "two", "${one}${one}", "three", "${two}x${two}",
		"unbound", "${one} ${nope} ${one}", "self", "a${self}b", "dollar", "$ {one} ${ one}", "inner", "${o${suffix}}", "suffix", "ne",
		"env", "${env.SET}|${env.EMPTY}|${env.EMPTY-d}|${env.EMPTY:-d}|${env.UNSET-d}|${env.UNSET:-d}", "gone", "${env.UNSET}",
		"notenv", "${missing:-d}", "prop", "${user.name} ${user.home} ${java.io.tmpdir}",
		"many", strings.Repeat("${one}", 21), "enough", strings.Repeat("${one}", 20),
		"blow", "${blow2}${blow2}", "blow2", "${blow}${blow}",
	)}, "SET", "s", "EMPTY", "", "USER", "alice", "HOME", "/home/alice")
	for k, want := range map[string]string{
		"two": "11", "three": "11x11", "unbound": "1 ${nope} ${one}", "self": "a${self}b", "dollar": "$ {one} ${ one}", "inner": "1",
		"env": "s|||d|d|d", "gone": "${env.UNSET}", "blow": "${blow2}${blow2}", "notenv": "${missing:-d}", "prop": "alice /home/alice /tmp", "enough": strings.Repeat("1", 20),
	} {
		wantString(t, c, k, want)
	}
	for _, k := range []string{"many"} {
		_, err := c.String(k)
		var ke *KeyError
		if !errors.As(err, &ke) || ke.Key != k || filepath.Base(ke.File) != "core-site.xml" {
			t.Errorf("%s: %v, want an error that names key and file", k, err)
		}
	}
}

func TestValues(t *testing.T) {
	c := load(t, map[string]string{"core-site.xml": props(
		"yes", " TRUE ", "no", "false", "odd", "yes", "n", " 42 ", "hex", "0x10", "f", "2.1", "d", "10s", "ms", "1500", "long", "999999999d",
		"list", " a, ,b ,", "addr", " h:1 ", "bare", "h", "uri", "https://h:9/", "v6", "[::1]:7", "badaddr", "h:x", "badaddr2", "h:1:2:", "var", "${nope}:1",
	)})
	check := func(what string, got any, err error, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v; want %v", what, got, err, want)
		}
	}
	b, err := c.Bool("yes", false)
	check("yes", b, err, true)
	b, err = c.Bool("no", true)
	check("no", b, err, false)
	b, err = c.Bool("absent", true)
	check("absent", b, err, true)
	n, err := c.Int("n", 0)
	check("n", n, err, int64(42))
	n, err = c.Int("hex", 0)
	check("hex", n, err, int64(16))
	f, err := c.Float("f", 0)
	check("f", f, err, 2.1)
	d, err := c.Duration("d", time.Millisecond, 0)
	check("d", d, err, 10*time.Second)
	d, err = c.Duration("ms", time.Millisecond, 0)
	check("ms", d, err, 1500*time.Millisecond)
	l, err := c.List("list")
	check("list", l, err, []string{"a", "b"})
	for k, want := range map[string]string{"addr": "h:1", "bare": "h:80", "uri": "h:9", "v6": "[::1]:7", "absent": ""} {
		a, err := c.Address(k, 80)
		check(k, a, err, want)
	}
	errs := map[string]error{}
	_, errs["odd"] = c.Bool("odd", false)
	_, errs["list"] = c.Int("list", 0)
	_, errs["yes"] = c.Float("yes", 0)
	_, errs["long"] = c.Duration("long", time.Second, 0)
	_, errs["badaddr"] = c.Address("badaddr", 1)
	_, errs["badaddr2"] = c.Address("badaddr2", 1)
	_, errs["var"] = c.Address("var", 1)
	for k, err := range errs {
		if err == nil || !strings.Contains(err.Error(), k) || !strings.Contains(err.Error(), "core-site.xml") {
			t.Errorf("%s: %v, want an error that names key and file", k, err)
		}
	}
}

func TestResourceManagers(t *testing.T) {
	one := load(t, map[string]string{"yarn-site.xml": props("yarn.resourcemanager.hostname", "m", "yarn.resourcemanager.webapp.address", "w:99")})
	rms, err := one.RMs()
	if want := []RM{{"", "m:8032", "m:8030", "m:8033", "w:99", "m:8090"}}; err != nil || !reflect.DeepEqual(rms, want) {
		t.Errorf("one RM: %v, %v; want %v", rms, err, want)
	}
	ha := []string{"yarn.resourcemanager.ha.enabled", "true", "yarn.resourcemanager.ha.rm-ids", " rm1 , rm2",
		"yarn.resourcemanager.hostname.rm1", "a", "yarn.resourcemanager.hostname.rm2", "b", "yarn.resourcemanager.scheduler.address.rm2", "s:1"}
	rms, err = load(t, map[string]string{"yarn-site.xml": props(ha...)}).RMs()
	want := []RM{{"rm1", "a:8032", "a:8030", "a:8033", "a:8088", "a:8090"}, {"rm2", "b:8032", "s:1", "b:8033", "b:8088", "b:8090"}}
	if err != nil || !reflect.DeepEqual(rms, want) {
		t.Errorf("HA: %v, %v; want %v", rms, err, want)
	}
	if _, err := load(t, map[string]string{"yarn-site.xml": props(ha[:6]...)}).RMs(); err == nil || !strings.Contains(err.Error(), "hostname.rm2") {
		t.Errorf("HA without rm2's host: %v", err)
	}
	if _, err := load(t, map[string]string{"yarn-site.xml": props(ha[:2]...)}).RMs(); err == nil || !strings.Contains(err.Error(), "rm-ids") {
		t.Errorf("HA without ids: %v", err)
	}
}

func TestFileSystems(t *testing.T) {
	c := load(t, map[string]string{
		"core-site.xml": props("fs.defaultFS", "hdfs://ns1"),
		"hdfs-site.xml": props("dfs.nameservices", "ns1,ns2", "dfs.ha.namenodes.ns1", "nn1,nn2",
			"dfs.namenode.rpc-address.ns1.nn1", "a:8020", "dfs.namenode.rpc-address.ns1.nn2", "b",
			"dfs.namenode.rpc-address.ns2", "c:9000", "dfs.ha.namenodes.ns3", "x"),
	})
	got, err := c.DefaultFS()
	if want := (FileSystem{"hdfs://ns1", "ns1", []string{"a:8020", "b:8020"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("default: %v, %v; want %v", got, err, want)
	}
	for uri, want := range map[string]FileSystem{
		"hdfs://ns2/x":    {"hdfs://ns2", "ns2", []string{"c:9000"}},
		"hdfs://host":     {"hdfs://host", "", []string{"host:8020"}},
		"hdfs://host:1/y": {"hdfs://host:1", "", []string{"host:1"}},
	} {
		if got, err := c.HDFS(uri); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v; want %v", uri, got, err, want)
		}
	}
	if _, err := c.HDFS("hdfs://ns3"); err == nil || !strings.Contains(err.Error(), "dfs.namenode.rpc-address.ns3.x") {
		t.Errorf("ns3: %v", err)
	}
	view := load(t, map[string]string{"core-site.xml": props("fs.defaultFS", "viewfs://x")})
	if _, err := view.DefaultFS(); err == nil || !strings.Contains(err.Error(), "fs.defaultFS") || !strings.Contains(err.Error(), "viewfs://x") {
		t.Errorf("viewfs: %v", err)
	}
}

func TestSecurity(t *testing.T) {
	c := load(t, map[string]string{"core-site.xml": props("hadoop.rpc.protection", "privacy, authentication", "hadoop.security.authentication", "Kerberos")})
	if q, err := c.Protection(); err != nil || !reflect.DeepEqual(q, []string{"auth-conf", "auth"}) {
		t.Errorf("protection: %v, %v", q, err)
	}
	if k, err := c.Kerberos(); err != nil || !k {
		t.Errorf("kerberos: %v, %v", k, err)
	}
	for in, want := range map[string]string{
		"rm/_HOST@R": "rm/host.example@R", "rm/fixed@R": "rm/fixed@R", "rm@R": "rm@R", "rm/_HOST": "rm/_HOST", "a/_HOST@R@S": "a/_HOST@R@S",
	} {
		if got := ServerPrincipal(in, "Host.Example"); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestMarshal(t *testing.T) {
	c := load(t, map[string]string{"core-site.xml": props("a", "x &amp; &lt;y&gt;", "b", "${a} ${env.E}", "secret", "s")}, "E", "e")
	data, err := c.Marshal(func(k string) bool { return k != "secret" })
	if err != nil {
		t.Fatal(err)
	}
	back, err := Read("shipped.xml", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantString(t, back, "b", "x & <y> e")
	wantString(t, back, "secret", "")
	wantString(t, back, "yarn.resourcemanager.address", "0.0.0.0:8032")
	if _, err := Read("s.xml", []byte(`<configuration><include href="/etc/hosts"/></configuration>`), nil); err == nil {
		t.Error("a shipped configuration includes a file")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(props("a", "${b}", "b", "${env.X:-${a}}")))
	f.Add([]byte(`<configuration><property name="a" value="b"/><include href="x"><fallback><property/></fallback></include></configuration>`))
	f.Add([]byte("<configuration><property><name>fs.defaultFS</name><value>hdfs://h:1</value></property></configuration>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read("fuzz.xml", data, environment("X", "${a}"))
		if err != nil {
			return
		}
		for _, k := range c.Keys() {
			_, _, _ = c.Lookup(k)
			_, _ = c.Address(k, 1)
			_, _ = c.Duration(k, time.Second, 0)
		}
		_, _ = c.RMs()
		_, _ = c.DefaultFS()
		if out, err := c.Marshal(nil); err == nil {
			if _, err := Read("again.xml", out, nil); err != nil {
				t.Errorf("cannot read what Marshal wrote: %v\n%s", err, out)
			}
		}
	})
}

// TestKeyErrorHides: an error shows the value that it is about, but no password.
func TestKeyErrorHides(t *testing.T) {
	for key, shown := range map[string]bool{"fs.defaultFS": true, "ssl.client.keystore.keypassword": false, "fs.s3a.Secret.key": false} {
		err := &KeyError{Key: key, File: "x.xml", Value: "hunter2", Err: errors.New("it is odd")}
		if got := strings.Contains(err.Error(), "hunter2"); got != shown {
			t.Errorf("%v", err)
		}
	}
}
