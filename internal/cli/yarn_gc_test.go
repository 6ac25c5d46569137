package cli

import (
	"net/http/httptest"
	"testing"

	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

// TestKnownApps: applications that the ResourceManager remembers from before a restart are this cluster's; others are left, and counted.
func TestKnownApps(t *testing.T) {
	const ended, runs, forgotten, other = "application_1600000000000_0001", "application_1600000000000_0002", "application_1600000000000_0003", "application_7_0001"
	c := yarntest.New(yarntest.Options{})
	t.Cleanup(c.Close)
	web := httptest.NewServer(c.WebHandler(0))
	t.Cleanup(web.Close)
	rm, err := yarnclient.Open(yarnclient.Options{Mode: yarnclient.REST, REST: yarnclient.Config{Bases: []string{web.URL}, Auth: yarnclient.UserName("alice")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rm.Close)
	for id, state := range map[string]string{ended: report.StateFinished, runs: report.StateRunning} {
		c.Put(yarntest.Application{App: report.App{ID: id, User: "alice", Name: "old", Type: appType, State: state}})
	}
	k, err := (&hadoop{rm: rm}).knownApps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{ended: true, runs: false, forgotten: true, other: false, "something": false} {
		if got := k.ended(name); got != want {
			t.Errorf("%s has ended: %v, want %v", name, got, want)
		}
	}
	if k.left != 1 {
		t.Errorf("%d are not this cluster's, want 1", k.left)
	}
	if k.foreign = true; !k.ended(other) || k.ended(runs) {
		t.Error("with --foreign an application of another cluster stays, or one that runs does not")
	}
}
