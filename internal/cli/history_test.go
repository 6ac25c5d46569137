package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/history"
)

// result runs a verb that succeeds and returns what it prints.
func (w *world) result(args ...string) string {
	w.t.Helper()
	in := w.start(args...)
	in.expect(0)
	return in.stdout.String()
}

// kept is what is in the state directory beside the reports of applications.
func (w *world) kept() ([]os.DirEntry, error) {
	entries, err := os.ReadDir(w.state)
	return slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == historyDir }), err
}

// TestHistory: what an application did is shown when it is gone, with its directory; secrets are masked; and one whose ApplicationMaster was killed has a
// report, too.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	out := filepath.Join(w.dir, "out")
	w.environ = append(w.environ, "HEDDLE_TRACE_HEADERS=authorization=s3cret")
	w.start("run", w.wordJob(w.file("in.txt", "a b a\n"), out), "--trace.endpoint", "http://127.0.0.1:1").expect(0)
	list := w.result("history")
	id := regexp.MustCompile(`heddle-[0-9a-f-]+`).FindString(list)
	if id == "" || !strings.Contains(list, "\twords\tfinished\t") {
		t.Fatalf("the list is\n%s", list)
	}
	text := w.result("history", id)
	for _, want := range []string{"words  finished, started ", "Vertices", "Containers", "agent-1", "Course", "running", "Configuration", "trace.endpoint"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	var r history.Report
	if err := json.Unmarshal([]byte(w.result("history", id, "--json")), &r); err != nil || !r.Complete || r.Snapshot == nil || len(r.Options) < 50 || len(r.Snapshot.Held) == 0 {
		t.Errorf("as JSON: %+v, %v", r, err)
	}
	raw, err := os.ReadFile(filepath.Join(w.state, historyDir, history.Name(id)))
	if err != nil || strings.Contains(string(raw), "s3cret") {
		t.Errorf("the file holds a secret, or is not there: %v", err)
	}
	if t.Failed() {
		t.Log(text)
	}

	run := w.start("run", w.endless(), "--history.interval", "1s")
	app, _ := w.running()
	shelf := history.Dir(filepath.Join(w.state, historyDir))
	w.eventually("a report of the running job", func() bool { _, err := shelf.Get(t.Context(), app.id); return err == nil })
	if text := w.result("history", app.id); !strings.Contains(text, "the application runs still") {
		t.Errorf("of the running one:\n%s", text)
	}
	killMaster(t, app)
	run.expect(5)
	if text := w.result("history", app.id); !strings.Contains(text, "running when last seen") || !strings.Contains(text, "not complete: written") {
		t.Errorf("of the killed one:\n%s", text)
	}
	w.start("history", "heddle-1-1").expect(3, "there is no report of heddle-1-1")
	w.start("run", w.endless(), "--history.max-count", "0", "--detach").expect(0)
	last, _ := w.running()
	w.start("cancel").expect(0)
	if _, err := shelf.Get(t.Context(), last.id); err == nil {
		t.Error("a report is kept though none shall be")
	}
}

// TestHistoryOfOthers: a report is a file that its application's owner may have written by hand: nothing in it draws on the terminal. It is found by a part of its
// name, as applications are.
func TestHistoryOfOthers(t *testing.T) {
	w := newWorld(t)
	const evil = `\u001b[2J`
	one := `{"format":1,"app":"x` + evil + `","job":"` + evil + `","state":"` + evil + `","user":"` + evil + `","queue":"` + evil + `","version":"` + evil + `","ending":"` + evil + `",
		"earlier":[{"state":"` + evil + `","ending":"` + evil + `"}],"options":[{"name":"` + evil + `","value":"` + evil + `","origin":"` + evil + `"}],
		"snapshot":{"cause":{"message":"` + evil + `"},"vertices":[{"name":"` + evil + `"}],"states":[{"state":"` + evil + `"}],"failures":[{"kind":"` + evil + `"}]}}`
	for name, text := range map[string]string{"heddle-1-aa": one, "heddle-1-ab": `{"format":99,"app":"` + evil + `"}`, "heddle-1-bb": "null"} {
		if err := os.MkdirAll(filepath.Join(w.state, historyDir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.state, historyDir, history.Name(name)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text := w.result("history", "aa", "--all") + w.result("history"); strings.Contains(text, "\x1b") || !strings.Contains(text, "Vertices") {
		t.Errorf("the report draws: %q", text)
	}
	w.start("history", "heddle-1-a").expect(2, "could be any of 2")
	w.start("history", "heddle-1-bb").expect(3, "it is none")
	later := w.start("history", "heddle-1-ab")
	later.expect(3, "later version")
	if strings.Contains(later.stderr.String(), "\x1b") {
		t.Errorf("the error draws: %q", later.stderr.String())
	}
}

// TestProfileAndExporter take profiles of the processes of a running application, and its metrics through the exporter.
func TestProfileAndExporter(t *testing.T) {
	w := newWorld(t)
	w.start("run", w.endless(), "--detach").expect(0)
	app, _ := w.running()
	if text := w.result("profile", app.id, "--master", "--stacks"); !strings.Contains(text, "\ngithub.com/heddle-stream/heddle/appmaster.(*master).loop(…)\n") {
		t.Errorf("the stacks of the ApplicationMaster: %.300s", text)
	}
	w.start("log-level", app.id, "kafkasorce=debug").expect(2, `no component "kafkasorce": there are appmaster, agent`)
	w.start("log-level", app.id).expect(2, "takes the id of an application and a level, got 1 arguments")
	w.start("log-level", app.id, "debug", "--for", "-5s").expect(2, "--for is -5s")
	w.start("log-level", app.id, "kafkasource=debug", "--for", "5s").expect(0)
	file := filepath.Join(w.dir, "cpu.pprof")
	w.result("profile", app.id, "--agent", "1", "--cpu", "100ms", "-o", file)
	if data, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(data), "\x1f\x8b") {
		t.Errorf("the CPU profile of an agent: %.20q, %v", data, err)
	}
	w.start("profile", app.id, "--agent", "1", "--cpu", "5m", "-o", w.dir).expect(3, "cannot write the profile: open "+w.dir)
	w.start("profile", app.id, "--agent", "77", "--heap").expect(3, "no such agent")
	w.start("profile", app.id, "--agent", "1").expect(2, "say which profile")
	w.start("profile", app.id, "--heap").expect(2, "say whose profile")
	w.start("profile", app.id, "--master", "--cpu", "1h").expect(2, "5m0s")

	ex := w.start("exporter", "--listen", "127.0.0.1:0", "--refresh", "0s")
	w.eventually("the exporter serves", func() bool { return strings.Contains(ex.stdout.String(), "/metrics") })
	text := get(t, strings.TrimSpace(ex.stdout.String()))
	for _, want := range []string{`heddle_app_up{app="` + app.id + `",job="endless",user="`, `heddle_job_state{app="` + app.id + `",job="endless",user="`, "heddle_appmaster_goroutines{", "heddle_exporter_up 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("the exporter does not serve %s", want)
		}
	}
	ex.signals <- os.Interrupt
	ex.expect(0)
	w.start("cancel").expect(0)
	w.start("profile", app.id, "--master", "--heap").expect(3, "has ended: canceled", "history "+app.id)
	w.start("run", w.endless(), "--detach", "--profile.enabled=false").expect(0)
	app, _ = w.running()
	w.start("profile", app.id, "--master", "--heap").expect(3, "profile.enabled")
	w.start("cancel").expect(0)
}

func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
