package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
)

// again prepares another attempt of an ApplicationMaster: its number and the port that the one before listened on, as restart writes
// them. It listens there too, since agents that outlived that look for it there.
func (app *application) again(attempt string) error {
	if attempt == "" {
		return nil
	}
	number, port, _ := strings.Cut(attempt, ":")
	n, err := strconv.ParseUint(number, 10, 15)
	if err != nil {
		return usage(fmt.Errorf("HEDDLE_ATTEMPT is %q, not a number and a port", attempt), "this variable is set by heddle itself; unset it")
	}
	app.attempt = uint32(n)
	if port == "" {
		return nil
	}
	return app.conf.Set("appmaster.port", port, conf.FromFlag, "the attempt before")
}

// lookFor is for how long agents look for another attempt of their master.
const lookFor = 30 * time.Second

// takeOver gives an attempt what it needs to take agents over from the one before, and to leave them to the next.
func (app *application) takeOver(cfg *appmaster.Config) error {
	cfg.Attempt = app.attempt
	if int(app.attempt)+1 < app.conf.Int("appmaster.attempts") {
		cfg.Rejoin = max(lookFor, app.conf.Duration("agent.heartbeat-timeout"))
	}
	if len(app.sec.Keys) == 0 {
		return nil
	}
	keys, err := appmaster.ParseKeys(app.sec.Keys)
	cfg.Keys = keys
	return err
}

// restart starts another attempt of an ApplicationMaster that has ended, if there may be one, and reports whether it did.
// how says in a few words how it ended.
func (r *running) restart(how string) bool {
	_, err := os.Stat(r.app.file(resultFile))
	if r.attempt+1 >= r.attempts || !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if _, err := os.Stat(r.app.file(secretFile)); err != nil {
		return false // it took its leave, or the directory is gone
	}
	r.master.close(0)
	number := strconv.Itoa(r.attempt + 1)
	var was appmaster.Addr
	if r.app.readJSON(appmaster.AddrFile, &was) == nil {
		if _, port, err := net.SplitHostPort(was.Control); err == nil {
			number += ":" + port
		}
		os.Remove(r.app.file(appmaster.AddrFile)) // the next one writes it when it listens
		r.client.web = ""
	}
	lock, err := lockDir(r.app.path)
	if err != nil {
		return false
	}
	defer lock.Close() // the ApplicationMaster holds it then
	r.attempt++
	m, err := r.s.startMaster(r.app, lock, true, append([]string{"HEDDLE_ATTEMPT=" + number}, r.environ...))
	if err != nil {
		r.progress.say("cannot start the ApplicationMaster again: " + err.Error())
		return false
	}
	r.progress.say(fmt.Sprintf("the ApplicationMaster %s; attempt %d of %d begins, and the job afresh", how, r.attempt+1, r.attempts))
	r.master, r.answered, r.misses, r.progress.begun = m, time.Time{}, 0, time.Now()
	return true
}
