package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	r, err := conf.NewRegistry(conf.Option{Name: "x.password", Secret: true}, conf.Option{Name: "appmaster.attempts", Type: conf.Int, Default: "1"})
	if err != nil {
		t.Fatal(err)
	}
	c := conf.New(r)
	if err := c.Set("x.password", "hunter2", conf.FromFile, "f"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := app.write(c, "", nil); err != nil {
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
		a, lock, err := createApp(state, time.Unix(int64(1000+i), 0))
		if err != nil {
			t.Fatal(err)
		}
		lock.Close()
		if err := os.Chtimes(a.path, time.Time{}, time.Now().Add(-2*justEnded)); err != nil { // it ended a while ago
			t.Fatal(err)
		}
	}
	unnamed := filepath.Join(state, "new-heddle-1000-00000000") // its creator died early
	young := filepath.Join(state, "new-heddle-1000-00000001")
	if err := errors.Join(os.Mkdir(unnamed, 0o700), os.Mkdir(young, 0o700), os.Chtimes(unnamed, time.Time{}, time.Now().Add(-time.Hour))); err != nil {
		t.Fatal(err)
	}
	prune(state)
	if left, err := filepath.Glob(filepath.Join(state, "new-*")); err != nil || len(left) != 1 || left[0] != young {
		t.Errorf("after prune: %v, %v, want %s alone", left, err, young)
	}
	apps, err := listApps(state)
	if err != nil || len(apps) != keptFailures+1 || apps[len(apps)-1].id != old.id || apps[0].started().Unix() != 1000+keptFailures+2 {
		t.Errorf("after prune: %d applications, %v, %v", len(apps), apps, err)
	}
}

// An application that has just ended is spared, however many started after it: somebody may be about to read its result.
func TestPruneSparesWhatHasJustEnded(t *testing.T) {
	state := t.TempDir()
	first, lock, err := createApp(state, time.Unix(1, 0)) // the oldest by its start
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(first.file(resultFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	for i := range keptFailures + 3 {
		_, lock, err := createApp(state, time.Unix(int64(1000+i), 0))
		if err != nil {
			t.Fatal(err)
		}
		lock.Close()
	}
	prune(state)
	if _, err := os.Stat(first.file(resultFile)); err != nil {
		t.Errorf("the result of an application that has just ended: %v", err)
	}
	past := time.Now().Add(-2 * justEnded)
	if err := os.Chtimes(first.file(resultFile), past, past); err != nil {
		t.Fatal(err)
	}
	prune(state)
	if _, err := os.Stat(first.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the oldest application that ended a while ago: %v, want it gone", err)
	}
}

// Whoever lists or prunes while an application is created neither keeps it from its lock nor takes it for a dead one.
func TestCreateAppWhileOthersLook(t *testing.T) {
	state := t.TempDir()
	stop, done := make(chan struct{}), make(chan struct{})
	var dead atomic.Int64
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			apps, err := listApps(state)
			if err != nil {
				t.Error(err)
				return
			}
			for _, a := range apps {
				if !a.alive() {
					dead.Add(1)
				}
			}
			prune(state)
		}
	}()
	var locks []*os.File
	for i := range 200 {
		_, lock, err := createApp(state, time.Unix(int64(1000+i), 0))
		if err != nil {
			t.Error(err)
			break
		}
		locks = append(locks, lock)
	}
	close(stop)
	<-done
	if dead.Load() > 0 {
		t.Errorf("applications were taken for dead %d times", dead.Load())
	}
	for _, lock := range locks {
		lock.Close()
	}
}

func TestOwnDir(t *testing.T) {
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "dir")
	if err := ownDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := ownDir(dir); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("it has mode %v, %v, want 0700", info.Mode(), err)
	}
	link := filepath.Join(tmp, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := ownDir(link); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a symbolic link: %v", err)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if err := ownDir(dir); err == nil || !strings.Contains(err.Error(), "mode 0770") {
		t.Errorf("a directory that the group may write: %v", err)
	}
	if os.Getuid() != 0 {
		return // only root can give a directory away
	}
	if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	if err := ownDir(dir); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("a directory of another user: %v", err)
	}
}

// What the host lacks is a precondition: the exit code is 3.
func TestStateDirCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"list", "status", "logs", "cancel"} {
		got := command(t, nil, []string{"HEDDLE_STATE_DIR=" + file}, args)
		if got.code != exitPrecondition || !strings.Contains(got.stderr, "--state-dir") {
			t.Errorf("heddle %s: exit code %d, stderr %s, want %d", args, got.code, got.stderr, exitPrecondition)
		}
	}
	if _, _, err := createApp(file, time.Now()); exitCode(err) != exitPrecondition {
		t.Errorf("createApp: %v, want a precondition", err)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	if err := os.Mkdir(filepath.Join(tmp, fmt.Sprintf("heddle-%d", os.Getuid())), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(tmp, fmt.Sprintf("heddle-%d", os.Getuid())), 0o777); err != nil {
		t.Fatal(err)
	}
	s := &session{env: Env{}}
	r, err := conf.NewRegistry(conf.Option{Name: "state-dir"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.stateDir(conf.New(r)); exitCode(err) != exitPrecondition || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("stateDir without a home: %v, want a refusal", err)
	}
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitFailed
}
