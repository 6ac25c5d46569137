package cli

import (
	"net"
	"os"
	"strconv"
	"testing"
)

// TestListensNowhere: where the ApplicationMaster could not listen on this host, nothing is started, and it is told which option to change.
func TestListensNowhere(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	w := newWorld(t)
	for _, tt := range []struct{ option, value, says string }{
		{"web.port", port, "cannot listen on a port of web.port " + port + ": listen tcp 127.0.0.1:" + port + ": bind: address already in use; give web.port another port"},
		{"web.bind", "192.0.2.1", "give web.bind an address of this host"},
		{"appmaster.bind", "192.0.2.1", "cannot listen on appmaster.bind 192.0.2.1"},
	} {
		w.start("run", w.endless(), "--"+tt.option, tt.value).expect(exitPrecondition, tt.says)
	}
	if _, err := os.Stat(w.state); err == nil {
		t.Error("an application was made")
	}
}

// TestBrackets: an IPv6 address may stand in brackets, as in a URL.
func TestBrackets(t *testing.T) {
	for text, want := range map[string]string{"[::1]": "::1", "::1": "::1", "[::1": "[::1", "node7": "node7"} {
		if got := bind(config(t, map[string]string{"web.bind": text}), "web.bind"); got != want {
			t.Errorf("web.bind %s listens on %q, want %q", text, got, want)
		}
	}
}
