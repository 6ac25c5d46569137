package identity

import (
	"encoding/binary"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
)

// conf is a configuration of these properties, name and value by turns.
func conf(t *testing.T, pairs ...string) *hconf.Conf {
	t.Helper()
	x := "<configuration>"
	for i := 0; i < len(pairs); i += 2 {
		x += "<property><name>" + pairs[i] + "</name><value>" + pairs[i+1] + "</value></property>"
	}
	c, err := hconf.Read("test.xml", []byte(x+"</configuration>"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var secure = []string{"hadoop.security.authentication", "kerberos", "dfs.namenode.kerberos.principal", "nn/_HOST@R", "yarn.resourcemanager.principal", "rm/_HOST@R",
	"hadoop.rpc.protection", "privacy,integrity", "dfs.data.transfer.protection", "privacy", "dfs.nameservices", "ns", "dfs.ha.namenodes.ns", "a,b",
	"dfs.namenode.rpc-address.ns.a", "nn1.test:8020", "dfs.namenode.rpc-address.ns.b", "nn2.test:8020", "hadoop.security.auth_to_local", "RULE:[1:$1@$0](.*@R)s/@.*// DEFAULT"}

func env(entries ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, e := range entries {
			if k, v, _ := strings.Cut(e, "="); k == name {
				return v, true
			}
		}
		return "", false
	}
}

// hdfsToken is a delegation token of an owner.
func hdfsToken(owner, service, password string) token.Named {
	id := []byte{0, byte(len(owner))}
	id = append(id, owner...)
	id = append(id, 0, 0, 0, 0, 1, 1)
	return token.Named{Alias: service, Token: token.Token{Kind: token.KindHDFS, Service: service, Identifier: id, Password: []byte(password)}}
}

func TestSimple(t *testing.T) {
	for _, x := range []struct {
		user string
		env  []string
		want string
	}{
		{"", []string{"HADOOP_USER_NAME=alice", "USER=bob"}, "alice"}, {"carol", []string{"HADOOP_USER_NAME=alice"}, "carol"}, {"", []string{"LOGNAME=dave"}, "dave"}, {"", nil, ""},
	} {
		i, err := Open(Config{Conf: conf(t), Env: env(x.env...), User: x.user})
		if (err == nil) != (x.want != "") || err == nil && (i.User() != x.want || i.Secure()) {
			t.Errorf("%+v: %v, %v", x, i, err)
		}
	}
	acts, err := Open(Config{Conf: conf(t), Env: env("USER=a", "HADOOP_PROXY_USER=b")})
	if err != nil || acts.User() != "b" || acts.Real() != "a" || !strings.Contains(acts.String(), "for whom a acts") {
		t.Fatalf("a proxy user: %v, %v", acts, err)
	}
	_, by := acts.REST(nil)
	asked := httptest.NewRequest(http.MethodGet, "http://rm/ws/v1?a=b", nil)
	if err := by.Authorize(asked); err != nil || asked.URL.RawQuery != "a=b&doAs=b&user.name=a" {
		t.Errorf("a proxy user: %v, %v", asked.URL, err)
	}
	if how, err := acts.HDFS(); err != nil || how.User != "b" || len(how.Security.Auth) != 1 || how.Security.Auth[0].User() != "b" {
		t.Errorf("a proxy user in HDFS: %+v, %v", how, err)
	}
	i, err := Open(Config{Conf: conf(t), Env: env("USER=alice")})
	if err != nil {
		t.Fatal(err)
	}
	_, auth := i.REST(nil)
	r := httptest.NewRequest(http.MethodGet, "http://rm/ws/v1?a=b", nil)
	if err := auth.Authorize(r); err != nil || r.URL.RawQuery != "a=b&user.name=alice" {
		t.Errorf("%v, %v", r.URL, err)
	}
	if c, err := i.Fetch(t.Context(), nil, nil); err != nil || len(c.Tokens) > 0 {
		t.Errorf("tokens without security: %v, %v", c, err)
	}
}

// TestTokens is a process that has tokens alone, as in a container.
func TestTokens(t *testing.T) {
	creds := token.Credentials{
		Tokens: []token.Named{hdfsToken("alice@R", "ha-hdfs:ns", "1"), hdfsToken("alice@R", "127.0.0.1:9000", "2"),
			{Alias: "rm", Token: token.Token{Kind: token.KindRM, Identifier: []byte("i"), Password: []byte("p")}}, {Token: token.Token{Kind: token.KindAMRM}}},
		Secrets: []token.Secret{{Name: "s", Value: []byte("v")}},
	}
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, creds.Append(nil), 0o600); err != nil {
		t.Fatal(err)
	}
	i, err := Open(Config{Conf: conf(t, secure...), Env: env("HADOOP_TOKEN_FILE_LOCATION="+file, "KRB5_CONFIG=/nowhere", "USER=container")})
	if err != nil {
		t.Fatal(err)
	}
	if i.User() != "alice" || i.Login() != nil || !strings.Contains(i.String(), "delegation tokens") {
		t.Errorf("we are %v", i)
	}
	for server, want := range map[string]string{"nn1.test:8020": "1", "nn2.test:8020": "1", "127.0.0.1:9000": "2", "localhost:9000": "2", "127.0.0.1:9001": ""} {
		got, ok := i.hdfsToken(server)
		if ok != (want != "") || string(got.Password) != want {
			t.Errorf("the token for %s is %q", server, got.Password)
		}
	}
	how, err := i.HDFS()
	if err != nil || how.User != "alice" || len(how.Security.Auth) != 1 || strings.Join(how.Security.Protection, ",") != "auth-conf,auth-int" || strings.Join(how.Security.DataTransfer, ",") != "auth-conf" {
		t.Errorf("HDFS: %+v, %v", how, err)
	}
	_, auth := i.REST(nil)
	r := httptest.NewRequest(http.MethodGet, "http://rm/", nil)
	if err := auth.Authorize(r); err != nil || r.Header.Get("X-Hadoop-Delegation-Token") == "" {
		t.Errorf("%v, %v", r.Header, err)
	}
	if c, err := i.Fetch(t.Context(), nil, nil); err != nil || len(c.Tokens) != 3 || len(c.Of(token.KindAMRM)) != 0 || len(c.Secrets) != 0 {
		t.Errorf("what is handed on: %+v, %v", c, err)
	}
	i.Replace(token.Credentials{Tokens: []token.Named{hdfsToken("alice@R", "ha-hdfs:ns", "3")}})
	if got, _ := i.hdfsToken("nn1.test:8020"); string(got.Password) != "3" || len(i.Credentials().Tokens) != 4 {
		t.Errorf("after a replacement: %q of %d", got.Password, len(i.Credentials().Tokens))
	}
	if _, _, err := i.Refresh(t.Context(), nil); err == nil {
		t.Error("new tokens without a login")
	}
	if err := i.CancelHDFS(t.Context(), nil, token.Token{Service: "ha-hdfs:other"}); err == nil || !strings.Contains(err.Error(), "ha-hdfs:other") {
		t.Errorf("a token of nobody's: %v", err)
	}
	for owner, want := range map[string]bool{"alice@R": true, "alice": true, "bob@R": false, "alice/host@OTHER": false, "": false} {
		if i.Owns(hdfsToken(owner, "s", "p").Token) != want {
			t.Errorf("ours is what is %q's: %v, want %v", owner, !want, want)
		}
	}
}

func TestNoLogin(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, binary.BigEndian.AppendUint32(nil, 7), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ entry, want string }{
		{"KRB5_CONFIG=/nowhere", "KRB5_CONFIG"}, {"HADOOP_TOKEN_FILE_LOCATION=/nowhere", "HADOOP_TOKEN_FILE_LOCATION"}, {"HADOOP_TOKEN_FILE_LOCATION=" + broken, "HDTS"},
	} {
		if _, err := Open(Config{Conf: conf(t, secure...), Env: env(x.entry)}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", x.entry, err)
		}
	}
}

// TestTrust asks a web service whose certificate the settings that came along trust, and no other.
func TestTrust(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	mine := &ssl.Settings{Store: "a store", Trust: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))}
	for name, settings := range map[string]*ssl.Settings{"trusted": mine, "not trusted": {Store: "another store"}} {
		i, err := Open(Config{Conf: conf(t), Env: env("USER=a"), TLS: settings})
		if err != nil {
			t.Fatal(err)
		}
		tr, _ := i.REST(nil)
		c := http.Client{Transport: tr}
		resp, err := c.Get(s.URL)
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != (settings == mine) || err != nil && !strings.Contains(err.Error(), "another store") {
			t.Errorf("%s: %v", name, err)
		}
		c.CloseIdleConnections()
	}
}
