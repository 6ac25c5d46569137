package identity

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/kms"
)

// byTokens is an identity on a secure cluster that has nothing but tokens.
func byTokens(t *testing.T, pairs []string, tokens ...token.Named) *Identity {
	t.Helper()
	i, err := Open(Config{Conf: conf(t, append(append([]string{}, secure...), pairs...)...), Env: env(), Credentials: &token.Credentials{Tokens: tokens}, WebPassword: "hush"})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// asked is what a request to an address becomes.
func asked(t *testing.T, authorize func(*http.Request) error) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h/p?op=X", nil)
	if err == nil {
		err = authorize(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWeb speaks HDFS over HTTP by the proof that the service takes.
func TestWeb(t *testing.T) {
	gateway := token.Token{Kind: "SWEBHDFS delegation", Service: "1.2.3.4:14000", Identifier: []byte("i"), Password: []byte("p")}
	tokens := []token.Named{hdfsToken("alice@R", "ha-hdfs:ns", "n"), {Alias: "g", Token: gateway}}
	nns := []string{"nn1.test:8020", "nn2.test:8020"}
	def := []string{"fs.defaultFS", "hdfs://ns"}
	web := func(pairs ...string) (*Identity, []string, func(*http.Request) error) {
		i := byTokens(t, append(append([]string{}, def...), pairs...), tokens...)
		cfg, err := i.HDFS()
		if err != nil || cfg.Web == nil {
			t.Fatal(err)
		}
		w, err := cfg.Web(nns)
		if err != nil {
			t.Fatal(err)
		}
		return i, w.Bases, w.Authorize
	}
	_, bases, authorize := web(KeyWebURI, "webhdfs", "dfs.namenode.http-address.ns.a", "nn1.test:50070", "dfs.namenode.http-address", "0.0.0.0:9999")
	if fmt.Sprint(bases) != "[http://nn1.test:50070/webhdfs/v1 http://nn2.test:9999/webhdfs/v1]" {
		t.Errorf("NameNodes are at %v", bases)
	}
	if r := asked(t, authorize); r.URL.Query().Get("delegation") != tokens[0].Token.URLString() || r.URL.Query().Get("op") != "X" {
		t.Errorf("asked %s", r.URL)
	}
	i, bases, authorize := web(KeyWebURI, "https://g1:14000, https://g2/x/webhdfs/v1/")
	if fmt.Sprint(bases) != "[https://g1:14000/webhdfs/v1 https://g2/x/webhdfs/v1]" || !i.NeedsTLS() {
		t.Errorf("gateways are at %v", bases)
	}
	if r := asked(t, authorize); r.Header.Get("X-Hadoop-Delegation-Token") != gateway.URLString() || r.URL.RawQuery != "op=X" {
		t.Errorf("asked %s, %v", r.URL, r.Header)
	}
	if w, err := i.webOf([]string{"other:8020"}); err != nil || len(w.Bases) != 0 {
		t.Errorf("another file system: %v, %v", w.Bases, err)
	}
	_, _, authorize = web(KeyWebURI, "https://knox/gateway/default/webhdfs/v1", KeyWebUser, "alice")
	if user, password, ok := asked(t, authorize).BasicAuth(); !ok || user != "alice" || password != "hush" {
		t.Errorf("logs in as %q", user)
	}
	none := byTokens(t, append([]string{KeyWebURI, "http://g:14000"}, def...), tokens[0])
	if r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://g", nil); err != nil || none.gatewayWeb().Authorize(r) == nil {
		t.Errorf("without a token: %v", err)
	}
}

func TestWebRefusals(t *testing.T) {
	for name, x := range map[string]struct {
		pairs []string
		want  string
	}{
		"scheme":   {[]string{KeyWebURI, "ftp://g"}, "neither webhdfs nor an address"},
		"password": {[]string{KeyWebURI, "https://alice:SECRET@g"}, "neither webhdfs nor an address"},
		"token":    {[]string{KeyWebURI, "https://g/?delegation=SECRET"}, "neither webhdfs nor an address"},
		"in clear": {[]string{KeyWebURI, "http://g", KeyWebUser, "alice"}, "to g in clear"},
		"NameNode": {[]string{KeyWebURI, "webhdfs", KeyWebUser, "alice"}, "cannot log in to NameNodes by a password"},
	} {
		_, err := Open(Config{Conf: conf(t, x.pairs...), Env: env("USER=a")})
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeyServer finds a key server as the NameNode says, else the configuration, and a token for it.
func TestKeyServer(t *testing.T) {
	const a, b = "kms://http@a:9600/kms", "kms://https@b:9600/kms"
	named := func(service, password string) token.Named {
		return token.Named{Alias: service, Token: token.Token{Kind: kms.TokenKind, Service: service, Password: []byte(password)}}
	}
	i := byTokens(t, []string{keyProviders, "jceks://file/x, " + b}, hdfsToken("alice@R", "nn1.test:8020", "n"), named(a, "1"), named("b:9600", "2"))
	one, err := i.KeyServer(a)
	again, _ := i.KeyServer(a)
	if one == nil || one != again || err != nil {
		t.Errorf("got %v, %v, %v", one, again, err)
	}
	if p, err := i.provider(""); p != b || err != nil || !i.NeedsTLS() {
		t.Errorf("the configuration's is %q, %v", p, err)
	}
	if tok, ok := i.keyToken(a); !ok || string(tok.Password) != "1" {
		t.Errorf("token %v, %v", tok, ok)
	}
	if _, ok := i.keyToken(b); ok {
		t.Error("another server's token is taken for it")
	}
	if c, err := i.keys("jceks://file/keys"); c != nil || err == nil || !strings.Contains(err.Error(), "no key server (KMS)") {
		t.Errorf("a file: %v, %v", c, err)
	}
	if c, err := byTokens(t, nil, hdfsToken("alice@R", "nn1.test:8020", "n")).keys(""); c != nil || err != nil {
		t.Errorf("none: %v, %v", c, err)
	}
}

// TestCancelGateway ends tokens of HttpFS, by themselves, or by who we are where all that is left of one is its identifier.
func TestCancelGateway(t *testing.T) {
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		seen = append(seen, r.Method+" "+r.URL.Path+" "+q.Get("op"))
		switch q.Get("op") {
		case "GETHOMEDIRECTORY":
			fmt.Fprint(w, `{"Path":"/user/alice"}`)
		case "CANCELDELEGATIONTOKEN":
			if got, err := token.ParseURLString(q.Get("token")); err != nil || string(got.Identifier) != "i" {
				t.Errorf("it is to cancel %v, %v", got, err)
			}
		}
	}))
	defer s.Close()
	tok := token.Token{Kind: "WEBHDFS delegation", Service: "1.2.3.4:14000", Identifier: []byte("i"), Password: []byte("p")}
	i := byTokens(t, []string{KeyWebURI, s.URL}, hdfsToken("alice@R", "nn1.test:8020", "n"), token.Named{Alias: "g", Token: tok})
	if err := i.CancelGateway(t.Context(), tok); err != nil {
		t.Error(err)
	}
	tok.Password = nil
	if err := i.CancelGateway(t.Context(), tok); err != nil {
		t.Error(err)
	}
	if want := []string{"PUT /webhdfs/v1/ CANCELDELEGATIONTOKEN", "GET /webhdfs/v1/ GETHOMEDIRECTORY", "PUT /webhdfs/v1/ CANCELDELEGATIONTOKEN"}; !slices.Equal(seen, want) {
		t.Errorf("asked %q, want %q", seen, want)
	}
	for name, pairs := range map[string][]string{"by RPC": nil, "WebHDFS": {KeyWebURI, NameNodesWeb}, "by a password": {KeyWebURI, "https://knox", KeyWebUser, "alice"}} {
		if err := byTokens(t, pairs, hdfsToken("alice@R", "nn1.test:8020", "n")).CancelGateway(t.Context(), tok); err == nil || !strings.Contains(err.Error(), "gives such tokens") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !OfGateway(tok) || OfGateway(token.Token{Kind: token.KindHDFS}) {
		t.Error("the kinds are mixed up")
	}
}

// TestTryGatewayToken finds out before a submission what takes no token, though it gives one.
func TestTryGatewayToken(t *testing.T) {
	tok := token.Token{Kind: "SWEBHDFS delegation", Service: "1.2.3.4:8443", Identifier: []byte("i"), Password: []byte("SECRET")}
	for name, x := range map[string]struct {
		answer func(http.ResponseWriter)
		says   string
	}{
		"HttpFS": {func(w http.ResponseWriter) { fmt.Fprint(w, `{"Path":"/user/alice"}`) }, ""},
		"Knox": {func(w http.ResponseWriter) {
			w.Header().Set("WWW-Authenticate", "Negotiate")
			w.WriteHeader(http.StatusUnauthorized)
		}, "as Knox does where it authenticates by Kerberos, and containers have no ticket. Log in there by hdfs.http-user"},
		"out of order": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, "HTTP status 404"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Hadoop-Delegation-Token") != tok.URLString() || r.URL.Path != "/gateway/default/webhdfs/v1/" {
				t.Errorf("%s: asked for %s, %v", name, r.URL, r.Header)
			}
			x.answer(w)
		}))
		i := byTokens(t, []string{KeyWebURI, s.URL + "/gateway/default/webhdfs/v1"}, hdfsToken("alice@R", "nn1.test:8020", "n"))
		if err := i.tryGatewayToken(t.Context(), tok); (err == nil) != (x.says == "") || err != nil && (!strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), tok.URLString())) {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
	i := byTokens(t, []string{KeyWebURI, "https://127.0.0.2/x, http://127.0.0.3"}, hdfsToken("alice@R", "nn1.test:8020", "n"))
	if s, err := i.gatewayService(); err != nil || s != "127.0.0.2:443" {
		t.Errorf("its token is found by %q, %v", s, err)
	}
}
