package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/web"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient"
)

// TestJudgeHTTPS: HTTPS is spoken where somebody can verify the certificate, or nothing else is allowed.
func TestJudgeHTTPS(t *testing.T) {
	for name, x := range map[string]struct {
		given         bool
		policy, alone string
		use           bool
		says          string
	}{
		"none":                       {false, "", "", false, ""},
		"lenient, before Hadoop 3.3": {false, policyLenient, "", false, ""},
		"strict, before Hadoop 3.3":  {false, policyStrict, "", false, "is STRICT, and YARN gave this container no key store"},
		"lenient":                    {true, policyLenient, "", true, ""},
		"strict":                     {true, policyStrict, "", true, ""},
		"not in our configuration":   {true, "", "", true, ""},
		"lenient, proxy alone":       {true, policyLenient, "p:1", false, "the web proxy at p:1 can't verify it"},
		"strict, proxy alone":        {true, policyStrict, "p:1", true, "not shown by the web proxy at p:1"},
		"none, proxy alone":          {false, "", "p:1", false, ""},
	} {
		use, says := judgeHTTPS(x.given, x.policy, x.alone)
		if use != x.use || (says == "") != (x.says == "") || !strings.Contains(says, x.says) {
			t.Errorf("%s: %v, %q", name, use, says)
		}
	}
}

func hadoopOf(t *testing.T, properties string) *hadoop {
	t.Helper()
	c, err := hconf.Read("yarn-site.xml", []byte("<configuration>"+properties+"</configuration>"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &hadoop{conf: c}
}

func property(name, value string) string {
	return "<property><name>" + name + "</name><value>" + value + "</value></property>"
}

// TestStandaloneProxy: a proxy at the ResourceManager's own address is its own.
func TestStandaloneProxy(t *testing.T) {
	rm := property("yarn.resourcemanager.webapp.address", "rm:8088") + property("yarn.resourcemanager.webapp.https.address", "rm:8090")
	for addr, want := range map[string]string{"": "", "rm:8088": "", "rm:8090": "", "proxy:9099": "proxy:9099"} {
		p := rm
		if addr != "" {
			p += property("yarn.web-proxy.address", addr)
		}
		if got := hadoopOf(t, p).standaloneProxy(); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
}

// TestDirectWeb: what the application registered counts, else the cluster's policy.
func TestDirectWeb(t *testing.T) {
	for name, x := range map[string]struct {
		policy, registered, want string
		unsure                   bool
	}{
		"registered":          {"", "https://n1:5/", "https://n1:4", false},
		"registered in clear": {policyStrict, "http://n1:5/", "http://n1:4", false},
		"by REST, strict":     {policyStrict, "", "https://n1:4", false},
		"by REST, lenient":    {policyLenient, "", "https://n1:4", true},
		"by REST, none":       {"NONE", "", "http://n1:4", false},
		"by REST":             {"", "", "http://n1:4", false},
		"no address":          {"", "N/A", "http://n1:4", false},
	} {
		p := ""
		if x.policy != "" {
			p = property(keyHTTPSPolicy, x.policy)
		}
		got, unsure := hadoopOf(t, p).directWeb(yarnclient.App{AMAddress: "n1:4", AMWeb: x.registered})
		if got != x.want || unsure != x.unsure {
			t.Errorf("%s: %s, %v", name, got, unsure)
		}
	}
}

// TestNothingOfTheMasters: agents get neither the application's secrets nor what YARN gave the ApplicationMaster to be known by.
func TestNothingOfTheMasters(t *testing.T) {
	all := token.Credentials{}
	for _, name := range []string{appSecret, kerberosSecret, "yarn.application.am.keystore", "yarn.application.am.keystore.password", "yarn.application.am.truststore",
		"yarn.application.am.truststore.password", webSecret} {
		all.Secrets = append(all.Secrets, token.Secret{Name: name, Value: []byte("x")})
	}
	if got := withoutApp(all).Secrets; len(got) != 1 || got[0].Name != webSecret {
		t.Errorf("agents get %+v", got)
	}
}

// shown is a master that shows one snapshot.
type shown struct{ is appmaster.Snapshot }

func (v *shown) Snapshot() *appmaster.Snapshot { return &v.is }
func (v *shown) Cancel(string)                 {}

// TestClientOverTLS asks an ApplicationMaster by HTTPS, whatever its certificate, and nobody in its place.
func TestClientOverTLS(t *testing.T) {
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"state":"finished"}`)) }))
	defer other.Close()
	cert := other.TLS.Certificates[0]
	at := func(cert *tls.Certificate) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		nobody := func(string) bool { return false }
		s, err := web.New(web.Config{Listener: l, Token: "right", Certificate: cert, Proxy: &web.Proxy{View: nobody, Modify: nobody}})
		if err == nil {
			_, err = s.Start(&shown{appmaster.Snapshot{State: "running"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		return l.Addr().String()
	}
	encrypted, plain, impostor := at(&cert), at(nil), other.Listener.Addr().String()
	for name, x := range map[string]struct {
		addr, token string
		unsure      bool
		want, says  string
	}{
		"encrypted":                 {"https://" + encrypted, "right", false, "running", ""},
		"encrypted, as was thought": {"https://" + encrypted, "right", true, "running", ""},
		"in clear, maybe":           {"https://" + plain, "right", true, "running", ""},
		"in clear":                  {"http://" + plain, "right", false, "running", ""},
		"in clear, and must not":    {"https://" + plain, "right", false, "", "it does not speak TLS"},
		"another token":             {"https://" + encrypted, "wrong", false, "", "not that of the application's token"},
		"an impostor":               {"https://" + impostor, "right", false, "", "is not the ApplicationMaster"},
	} {
		c := clientOf("app", x.token)
		c.http.Timeout = time.Minute
		c.web, c.unsure = x.addr, x.unsure
		for range 2 { // as often as a client asks
			snap, err := c.snapshot(t.Context())
			if (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) || err == nil && snap.State != x.want {
				t.Errorf("%s: %+v, %v; want %q", name, snap, err, x.says)
			}
			if a, ok := errors.AsType[*answerError](err); ok && a.code != http.StatusUnauthorized {
				t.Errorf("%s: %v", name, err)
			}
		}
		c.close()
	}
}
