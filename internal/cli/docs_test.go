package cli

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite generated files")

func TestReferenceIsCurrent(t *testing.T) {
	const file = "../../docs/cli.md"
	want := reference()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the help texts generate (%v); run go test ./internal/cli -update", file, err)
	}
}
