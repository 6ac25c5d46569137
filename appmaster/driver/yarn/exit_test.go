package yarn

import (
	"slices"
	"testing"
)

// TestWrote: the NodeManager's words on a container that failed hold the end of what it wrote.
func TestWrote(t *testing.T) {
	const failed = `[2026-11-30 21:00:00.123]Container exited with a non-zero exit code 3. Error file: prelaunch.err.
Last 4096 bytes of prelaunch.err :
Last 4096 bytes of stderr :
time=… level=INFO msg="agent starts"
[main] heddle: cannot read x

[2026-11-30 21:00:00.124]Container exited with a non-zero exit code 3. Error file: prelaunch.err.
`
	for _, x := range []struct {
		name, in string
		want     []string
	}{
		{"failed", failed, []string{`time=… level=INFO msg="agent starts"`, "[main] heddle: cannot read x"}},
		{"killed", "[2026-11-30 21:00:00.123]Container killed on request. Exit code is 137\n[2026-11-30 21:00:00.124]Container exited with a non-zero exit code 137. \n", nil},
		{"nothing written", "x\nLast 4096 bytes of stderr :\n\n", nil},
		{"none", "", nil},
	} {
		if got := wrote(x.in, 10); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}
