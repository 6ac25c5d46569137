package conf

import (
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	tests := []struct {
		o          Option
		text, want string
		err        string // substring; "" for none
	}{
		{Option{Type: Bool}, "yes", "true", ""},
		{Option{Type: Bool}, "0", "false", ""},
		{Option{Type: Bool}, "maybe", "", `option x: "maybe" is not true or false`},
		{Option{Type: Int}, " 1_000 ", "1000", ""},
		{Option{Type: Int}, "1.5", "", "a whole number"},
		{Option{Type: Int, Min: "1"}, "0", "", "out of range: want a whole number, at least 1"},
		{Option{Type: Int, Min: "1", Max: "8"}, "9", "", "from 1 to 8"},
		{Option{Type: Duration}, "5m0s", "5m", ""},
		{Option{Type: Duration}, "7d", "168h", ""},
		{Option{Type: Duration}, "90m", "1h30m", ""},
		{Option{Type: Duration}, "0", "0", ""},
		{Option{Type: Duration}, "5", "", "a duration such as"},
		{Option{Type: Duration}, "NaNd", "", "a duration such as"},
		{Option{Type: Duration, Min: "0"}, "-1s", "", "at least 0"},
		{Option{Type: Bytes}, "32768", "32KiB", ""},
		{Option{Type: Bytes}, "1.5 GiB", "1536MiB", ""},
		{Option{Type: Bytes}, "64m", "64MiB", ""},
		{Option{Type: Bytes}, "1MB", "1000000", ""},
		{Option{Type: Bytes}, "-1", "", "an amount of bytes"},
		{Option{Type: Bytes}, "9999999999g", "", "an amount of bytes"},
		{Option{Type: List}, " a, b,,c ", "a,b,c", ""},
		{Option{Type: Enum, Values: []string{"a", "b"}}, "b", "b", ""},
		{Option{Type: Enum, Values: []string{"a", "b"}}, "c", "", "one of a, b"},
		{Option{Type: String}, "", "", ""},
		{Option{Type: Int, Secret: true}, "hunter2", "", Mask},
	}
	for _, tt := range tests {
		tt.o.Name = "x"
		got, err := tt.o.Canonical(tt.text)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("Canonical(%s %q) = %q, %v, want %q, error %q", tt.o.Type, tt.text, got, err, tt.want, tt.err)
		}
		if err == nil {
			if again, err := tt.o.Canonical(got); again != got || err != nil {
				t.Errorf("Canonical(%q) = %q, %v: not canonical", got, again, err)
			}
		}
	}
}

func TestRegistryRefuses(t *testing.T) {
	tests := []struct {
		name    string
		options []Option
	}{
		{"same name", []Option{{Name: "a.b"}, {Name: "a.b"}}},
		{"same variable", []Option{{Name: "a.b"}, {Name: "a-b"}}},
		{"upper case", []Option{{Name: "A"}}},
		{"empty", []Option{{Name: ""}}},
		{"dot at the end", []Option{{Name: "a."}}},
		{"bad default", []Option{{Name: "a", Type: Int, Default: "many"}}},
	}
	for _, tt := range tests {
		if _, err := NewRegistry(tt.options...); err == nil {
			t.Errorf("%s: NewRegistry reported no error", tt.name)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"exchange.tls", "exchange.segment-bytes", "agents", "agent.slots", "parallelism"}
	for name, want := range map[string]string{
		"exchange.tsl":   "exchange.tls",
		"segment-bytes":  "exchange.segment-bytes",
		"agent":          "agents",
		"paralelism":     "parallelism",
		"agents.slots":   "agent.slots",
		"something-else": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

// Whatever is accepted has a canonical text that is accepted and its own canonical text.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"", "1", "1.5GiB", "7d", "1h30m", "-3", "a,b", "true", "1e300k", "99999999999999999999", "+1d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for typ := String; typ <= List; typ++ {
			o := Option{Name: "x", Type: typ}
			once, err := o.Canonical(text)
			if err != nil {
				continue
			}
			if twice, err := o.Canonical(once); err != nil || twice != once {
				t.Errorf("Canonical(%s %q) = %q, but of that %q, %v", typ, text, once, twice, err)
			}
		}
	})
}
