package conf

import (
	"testing"

	"github.com/heddle-stream/heddle"
)

func TestDeclaredOptionsAreKnown(t *testing.T) {
	before, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	heddle.DeclareOption(heddle.Option{Name: "test-connector.retries", Type: heddle.IntOption, Default: "3", Doc: "How often."})
	r, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	c := New(r)
	if got := c.Int("test-connector.retries"); got != 3 || len(r.Options()) != len(before.Options())+1 {
		t.Errorf("a declared option has the value %d, want its default 3", got)
	}
}
