package yarn

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
)

// testHistory looks into a running application through the ResourceManager's proxy, by a profile and by the exporter; and at what applications did when they are
// gone: one that was cancelled, and one that YARN killed.
func (c *command) testHistory(t *testing.T) {
	app := c.detached(t, append([]string{c.endless(), "--history.interval", "2s"}, eight...)...)
	c.running(t, app)
	c.run(t, 0, []string{"goroutine ", "agent.Run(…)"}, "profile", app, "--agent", "1", "--stacks")
	c.exported(t, app)
	c.run(t, 0, []string{app, "canceled"}, "cancel", app)
	c.run(t, 0, []string{"endless  canceled, started ", "agent-4", "container_", "Configuration", "history.interval", "YARN says: ", "cancelled"}, "history", app)
	file, err := c.fs.Stat(path.Join(c.fs.Home(), ".heddle/history", app+".json"))
	if err != nil || file.Mode.Perm() != 0o600 {
		t.Errorf("the report: %+v, %v; want it for its owner alone", file, err)
	}

	app = c.detached(t, c.endless(), "--history.interval", "1s")
	c.running(t, app)
	c.bed.Eventually("a report of the running job", patience, func() error {
		_, err := c.fs.Stat(path.Join(c.fs.Home(), ".heddle/history", app+".json"))
		return err
	})
	c.run(t, 0, []string{app, "killed"}, "kill", app)
	c.run(t, 0, []string{"when last seen", "not complete: written ", "YARN: killed"}, "history", app)
	c.run(t, 0, []string{app, "when last seen", "\tcanceled\t"}, "history")
	c.run(t, 0, []string{"would remove ", " reports of applications; 1 stay"}, "gc", "--dry-run", "--history.max-count", "1")
	c.clean(t)
}

// exported reads an application's metrics from the exporter, which gets them through the proxy.
func (c *command) exported(t *testing.T, app string) {
	t.Helper()
	e := c.start(t, "exporter", "--listen", "127.0.0.1:0", "--refresh", "0s")
	address := regexp.MustCompile(`http://[0-9.]+:[0-9]+/metrics`)
	want := []string{fmt.Sprintf(`heddle_app_up{app="%s",job="endless",queue="`, app), fmt.Sprintf(`",user="%s"} 1`, user), "heddle_subtask_records_out_total{app=", "heddle_exporter_up 1"}
	c.bed.Eventually("the exporter serves the application", patience, func() error {
		at := address.FindString(e.Output())
		if at == "" {
			return fmt.Errorf("it says %q", e.Tail(3))
		}
		r, err := http.Get(at)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		for _, part := range want {
			if err == nil && !strings.Contains(string(text), part) {
				err = fmt.Errorf("no %s in\n%.1000s\n%s", part, text, e.Tail(3))
			}
		}
		return err
	})
	e.Interrupt()
	c.ends(t, e, 0)
}
