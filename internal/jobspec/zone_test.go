package jobspec

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestZoneNames compares the names with those of the Go distribution; -update writes them.
func TestZoneNames(t *testing.T) {
	for name := range strings.FieldsSeq(zoneNames) {
		if _, err := time.LoadLocation(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !*update {
		return
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib/time/zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var names []string
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	if err := os.WriteFile("zones.txt", []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestUnknownZone(t *testing.T) {
	for name, want := range map[string]string{
		"Europe/Berln": `did you mean "Europe/Berlin"?`,
		"berlin":       `did you mean "Europe/Berlin"?`,
		"new york":     `did you mean "America/New_York"?`,
		"Nowhere/None": "names are those of IANA",
		"Local":        "not the same everywhere",
	} {
		if got := UnknownZone(name); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
