package krb

import (
	"slices"
	"testing"
)

func FuzzPrincipal(f *testing.F) {
	for _, s := range []string{"alice@A.TEST", "nn/host@A.TEST", `a\@b\/c`, "a@b@c", `\`, "/@", `a@b\@c`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePrincipal(s)
		if err != nil {
			return
		}
		if again, err := ParsePrincipal(p.String()); err != nil || again.Realm != p.Realm || !slices.Equal(again.Parts, p.Parts) {
			t.Errorf("%q is %q, which is read as %+v, %v", s, p, again, err)
		}
	})
}
