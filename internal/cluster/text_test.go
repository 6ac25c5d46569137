package cluster

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	for _, tt := range []struct{ name, in, want string }{
		{"short", "fine", "fine"},
		{"not text", "a\xffb\xfe\xfdc", "a\uFFFDb\uFFFDc"},
		{"cut", "where: " + long + " why", "where: ä"},
	} {
		got := Clip(tt.in, 200)
		if !strings.HasPrefix(got, tt.want) || len(got) > 200 || len(tt.in) <= 200 && got != tt.want {
			t.Errorf("%s: got %q of %d bytes", tt.name, got, len(got))
		}
	}
	if got := Clip("where: "+long+" why", 200); !strings.HasSuffix(got, "ä why") || !strings.Contains(got, "bytes left out") {
		t.Errorf("got %q", got)
	}
}

func FuzzClip(f *testing.F) {
	f.Add("plain", 100)
	f.Add(strings.Repeat("\xff", 300), 256)
	f.Add(strings.Repeat("ä\x80", 300), 257)
	f.Fuzz(func(t *testing.T, in string, most int) {
		most = 100 + most&0xfff
		got := Clip(in, most)
		if len(got) > most || !utf8.ValidString(got) {
			t.Errorf("clipped to %d: got %d bytes, %q", most, len(got), got)
		}
		if len(in) <= most && utf8.ValidString(in) && got != in {
			t.Errorf("text that fits was changed: %q to %q", in, got)
		}
		if again := Clip(got, most); again != got {
			t.Errorf("clipped twice: %q, then %q", got, again)
		}
	})
}

func TestFitFailure(t *testing.T) {
	f := Failure{Kind: Lost, Message: strings.Repeat("\xff", 1<<20), Operator: strings.Repeat("o", 1<<10), Peer: "p\xff"}.Fit()
	if f.Kind != Lost || len(f.Message) > MaxText || len(f.Operator) > MaxName || f.Peer != "p\uFFFD" {
		t.Errorf("got %d bytes of text, %d of operator, peer %q", len(f.Message), len(f.Operator), f.Peer)
	}
}
