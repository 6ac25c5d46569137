package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// left are the files below an application's directory that let somebody in.
func (w *world) left(app appDir) (files []string) {
	w.t.Helper()
	err := filepath.WalkDir(app.path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == secretFile || filepath.Base(filepath.Dir(path)) == "join") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	return files
}

// An application whose ApplicationMaster is killed leaves its logs, but none of its secrets.
func TestSecretsOfTheKilled(t *testing.T) {
	w := newWorld(t)
	in := w.start("run", w.endless(), "--parallelism", "4")
	app, _ := w.running()
	if len(w.left(app)) == 0 {
		t.Error("a running application has no secrets")
	}
	killMaster(t, app)
	in.expect(5, "the ApplicationMaster died")
	if left := w.left(app); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A detached application leaves its result, but none of its secrets; of one that was killed, the next one removes them.
func TestSecretsOfTheDetached(t *testing.T) {
	w := newWorld(t)
	w.start("run", w.endless(), "--detach").expect(0)
	first, _ := w.running()
	w.start("cancel").expect(0)
	if left := w.left(first); len(left) > 0 {
		t.Errorf("a cancelled application left behind: %v", left)
	}
	if st := stateOf(t.Context(), first, false); st.State != "canceled" {
		t.Errorf("its state is %s", st.State)
	}

	w.start("run", w.endless(), "--detach", "--target", "standalone", "--schema-registry.kerberos.conf", "/not/here.conf").
		expect(0, "warning: the file of schema-registry.kerberos.conf is not on this host: it must be on all agents' hosts")
	var second appDir
	w.eventually("an agent is asked for", func() bool {
		second, _ = findApp(w.state, "")
		files, _ := filepath.Glob(second.file("join/*"))
		return len(files) > 0
	})
	killMaster(t, second)
	w.eventually("its lock is free", func() bool { return !second.alive() })
	if left := w.left(second); len(left) < 2 {
		t.Errorf("a killed application has %v, want its secrets and tickets", left)
	}
	w.start("run", w.wordJob(w.file("in.txt", text), filepath.Join(w.dir, "out")), "--quiet").expect(0)
	if left := w.left(second); len(left) > 0 {
		t.Errorf("a killed application left behind: %v", left)
	}
}

// Nobody could control an application without its directory: it ends.
func TestDirectoryIsRemoved(t *testing.T) {
	w := newWorld(t)
	in := w.start("run", w.endless(), "--parallelism", "2")
	app, _ := w.running()
	if err := os.RemoveAll(app.path); err != nil {
		t.Fatal(err)
	}
	in.expect(5, "directory "+app.path+" was removed")
	w.gone()

	w.start("run", w.endless(), "--detach").expect(0)
	if app, _ = w.running(); len(w.processes()) == 0 {
		t.Error("no process runs")
	}
	if err := os.Rename(app.path, w.dir+"/elsewhere"); err != nil {
		t.Fatal(err)
	}
	w.gone()
	log, err := os.ReadFile(w.dir + "/elsewhere/" + logFile)
	if want := "directory " + app.path + " was removed"; err != nil || !strings.Contains(string(log), want) {
		t.Errorf("the log is\n%s\n%v, want %q in it", log, err, want)
	}
	if _, err := os.Stat(app.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there again: %v", err)
	}
}

// Only what has ended is cleaned.
func TestPruneLeavesSecretsOfTheLiving(t *testing.T) {
	w := newWorld(t)
	w.start("run", w.endless(), "--detach").expect(0)
	app, _ := w.running()
	prune(w.state)
	if len(w.left(app)) == 0 {
		t.Error("a running application lost its secrets")
	}
	signalMaster(t, app, syscall.SIGTERM)
}
