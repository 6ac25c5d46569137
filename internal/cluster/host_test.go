package cluster

import "testing"

func TestSameHost(t *testing.T) {
	for _, x := range []struct {
		a, b string
		want bool
	}{
		{"n1.example.org", "n1.example.org", true},
		{"N1.Example.org", "n1.example.org.", true},
		{"n1", "N1.example.org", true},
		{"n1", "n1", true},
		{"n1", "n2.example.org", false},
		{"n1", "n10.example.org", false},
		{"n1.a.org", "n1.b.org", false},
		{"10.0.0.1", "10.0.0.1", true},
		{"10", "10.0.0.1", false},
		{"10.0.0.1", "10.0.0.2", false},
		{"", ".example.org", false},
	} {
		if SameHost(x.a, x.b) != x.want || SameHost(x.b, x.a) != x.want {
			t.Errorf("%q and %q: want %v both ways", x.a, x.b, x.want)
		}
	}
}
