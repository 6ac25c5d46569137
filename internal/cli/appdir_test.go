package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/conf"
)

func TestAppDir(t *testing.T) {
	state := t.TempDir()
	app, lock, err := createApp(state, time.Unix(1_767_225_600, 0))
	if err != nil {
		t.Fatal(err)
	}
	if !app.alive() {
		t.Error("an application whose lock is held does not count as alive")
	}
	if found, err := findApp(state, ""); err != nil || found.id != app.id {
		t.Errorf("findApp of the newest = %v, %v, want %s", found, err, app.id)
	}
	lock.Close()
	if app.alive() {
		t.Error("an application whose lock is free counts as alive")
	}
	if _, err := findApp(state, ""); err == nil {
		t.Error("findApp found a running application where none runs")
	}
	if found, err := findApp(state, app.id[:12]); err != nil || found.id != app.id {
		t.Errorf("findApp by the beginning of the id = %v, %v, want %s", found, err, app.id)
	}
}

func TestAppDirKeepsSecretsApart(t *testing.T) {
	app, lock, err := createApp(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	r, err := conf.NewRegistry(conf.Option{Name: "x.password", Secret: true})
	if err != nil {
		t.Fatal(err)
	}
	c := conf.New(r)
	if err := c.Set("x.password", "hunter2", conf.FromFile, "f"); err != nil {
		t.Fatal(err)
	}
	if _, err := app.write(c, "", nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(app.file(confFile))
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("%s, %v: holds a secret", text, err)
	}
	sec, err := app.readSecrets()
	if err != nil || sec.Options["x.password"] != "hunter2" || len(sec.Token) < 20 {
		t.Errorf("readSecrets = %v, %v", sec, err)
	}
	info, err := os.Stat(app.file(secretFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the secrets is %v, %v, want 0600", info.Mode(), err)
	}
	dir, err := os.Stat(app.path)
	if err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("mode of the application's directory is %v, %v, want 0700", dir.Mode(), err)
	}
}

func TestPruneKeepsTheNewestAndTheLiving(t *testing.T) {
	state := t.TempDir()
	old, lock, err := createApp(state, time.Unix(1, 0)) // the oldest, still alive
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for i := range keptFailures + 3 {
		_, lock, err := createApp(state, time.Unix(int64(1000+i), 0))
		if err != nil {
			t.Fatal(err)
		}
		lock.Close()
	}
	prune(state)
	apps, err := listApps(state)
	if err != nil || len(apps) != keptFailures+1 || apps[len(apps)-1].id != old.id || apps[0].started().Unix() != 1000+keptFailures+2 {
		t.Errorf("after prune: %d applications, %v, %v", len(apps), apps, err)
	}
}

func TestTail(t *testing.T) {
	file := t.TempDir() + "/log"
	if err := os.WriteFile(file, []byte("a\nb\nc\x1b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(tail(file, 2), "|"); got != "b|c�" {
		t.Errorf("tail of 2 = %q", got)
	}
	if got := tail(file+"none", 2); got != nil {
		t.Errorf("tail of no file = %q", got)
	}
}
