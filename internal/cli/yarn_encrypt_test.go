package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/conf"
)

// TestEncrypt: records are encrypted on a cluster that demands Kerberos, unless somebody says no, who is warned.
func TestEncrypt(t *testing.T) {
	for _, x := range []struct {
		kerberos, option string // of Hadoop, and exchange.tls; "": unset
		tls, warned      bool
	}{{"kerberos", "", true, false}, {"kerberos", "true", true, false}, {"kerberos", "false", false, true}, {"simple", "", false, false}, {"simple", "true", true, false}, {"", "false", false, false}} {
		set := map[string]string{}
		if x.option != "" {
			set["exchange.tls"] = x.option
		}
		c, h := config(t, set), &hadoop{conf: hadoopConf(t, map[string]string{"hadoop.security.authentication": x.kerberos})}
		if x.kerberos == "" {
			h.conf = hadoopConf(t, nil)
		}
		if err := h.encrypt(c); err != nil {
			t.Fatal(err)
		}
		r, err := registry()
		if err != nil {
			t.Fatal(err)
		}
		back, err := conf.Restore(r, confFile, c.AppendYAML(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := back.Bool("exchange.tls"); got != x.tls {
			t.Errorf("%+v: encrypted %v", x, got)
		}
		if text := h.inClear(back); (text != "") != x.warned || x.warned && !strings.Contains(text, "exchange.tls is off") {
			t.Errorf("%+v: the warning is %q", x, text)
		}
	}
}

// TestProxyPages are where YARN's web proxies send from and are found: at every ResourceManager, and alone.
func TestProxyPages(t *testing.T) {
	h := &hadoop{conf: hadoopConf(t, map[string]string{
		"yarn.web-proxy.address": "proxy:9099", "yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "a,b",
		"yarn.resourcemanager.hostname.a": "rm1", "yarn.resourcemanager.hostname.b": "rm2", "yarn.resourcemanager.webapp.address.b": "web2:80",
	})}
	pages := h.proxyPages()
	for _, want := range []string{"proxy:9099", "rm1:8088", "rm1:8090", "web2:80", "rm2:8090"} {
		if !slices.Contains(pages, want) {
			t.Errorf("%q is missing of %v", want, pages)
		}
	}
	if hosts := hostsOf(pages); !slices.Equal(hosts, []string{"proxy", "rm1", "web2", "rm2"}) {
		t.Errorf("hosts %v", hosts)
	}
}
