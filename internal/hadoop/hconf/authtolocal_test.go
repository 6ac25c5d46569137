package hconf

import (
	"strings"
	"testing"
)

func TestShortName(t *testing.T) {
	const rules = `RULE:[2:$1/$2@$0]([ndj]n/.*@R)s/.*/hdfs/ RULE:[2:$1@$0](rm@.*R)s/.*/yarn/
		RULE:[1:$1@$0](.*@CORP\.COM)s/@.*///L RULE:[1:$1@$0](a(b)c.*@OTHER)s/a(b)c/$1x/ DEFAULT`
	for _, x := range []struct{ rules, principal, want string }{
		{rules, "nn/host@R", "hdfs"}, {rules, "rm/host@R", "yarn"}, {rules, "Alice@CORP.COM", "alice"}, {rules, "bob@R", "bob"}, {rules, "abcd@OTHER", ""},
		{rules, "carol@ELSE", ""}, {"", "dave@R", "dave"}, {"", "dave/x@R", "dave"}, {"", "dave@S", ""}, {"nonsense", "dave@R", ""},
		{"RULE:[1:$1.$0]s/\\./_/g", "a.b@C.D", "a_b_C_D"}, {"RULE:[1:$1]", "x@Y", "x"}, {"RULE:[1:$1](", "x@Y", ""},
	} {
		c := blank(nil, "")
		c.props["hadoop.security.auth_to_local"] = property{raw: x.rules}
		name, realm, _ := strings.Cut(x.principal, "@")
		got, err := c.ShortName(strings.Split(name, "/"), realm, "R")
		if got != x.want || (err == nil) != (x.want != "") {
			t.Errorf("%s by %q: %q, %v, want %q", x.principal, x.rules, got, err, x.want)
		}
	}
	c := blank(nil, "")
	c.props["hadoop.security.auth_to_local.mechanism"] = property{raw: "mit"}
	if got, err := c.ShortName([]string{"a"}, "S", "R"); err != nil || got != "a@S" {
		t.Errorf("mit: %q, %v", got, err)
	}
}

func FuzzRules(f *testing.F) {
	f.Add("RULE:[2:$1/$2@$0]([ndj]n/.*@R)s/.*/hdfs/ DEFAULT", "a/b")
	f.Fuzz(func(t *testing.T, rules, name string) {
		rs, err := parseRules(rules)
		if err != nil {
			return
		}
		for _, r := range rs {
			r.apply(strings.Split(name, "/"), "R", "R")
		}
	})
}
