package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/hadoop/collected"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// logWindow is how much of the end of a log is read at a time.
const logWindow = 256 << 10

// yarnLog is a log of a container, of which the first part is printed.
type yarnLog struct {
	name      string // of who writes it
	node      string
	container yarnid.Container
	file      string
	seen      string // the end of what is printed
}

// logsYARN prints the logs of an application's running containers, as their NodeManagers have them, and those of its masters. Of an application that is over,
// it prints what NodeManagers collected in HDFS, and what they have still.
func (s *session) logsYARN(ctx context.Context, id yarnid.Application, lines int, follow bool) error {
	return s.withYARN(func(_ *conf.Config, h *hadoop) error {
		r := &logReader{session: s, h: h, id: id, logs: map[string]*yarnLog{}, lines: lines}
		for {
			a, err := h.app(ctx, id)
			if yarnclient.IsUnknown(err) && r.collectedOf(ctx, h.user) { // ours, which YARN has forgotten
				return r.end()
			}
			if err != nil {
				return yarnError(err)
			}
			if r.app = a; a.Ended() && len(r.logs) == 0 { // of one that was followed to its end, the rest is with NodeManagers
				r.collectedOf(ctx, a.User)
			}
			if h.rm.Web() == nil && (!a.Ended() || !r.printed) {
				return usage(errors.Join(errors.New("logs of containers are to be had from web services only: yarn.client is rpc"), r.why()))
			}
			if h.rm.Web() != nil {
				err := r.running(ctx)
				if err != nil && !r.printed {
					return yarnError(err)
				}
				r.failed(err)
			}
			if !follow || a.Ended() {
				return r.end()
			}
			select {
			case <-ctx.Done():
				return nil
			case <-s.env.Signals:
				return nil
			case <-time.After(time.Second):
			}
		}
	})
}

// logReader prints the logs of an application.
type logReader struct {
	*session
	h     *hadoop
	id    yarnid.Application
	lines int

	app       yarnclient.App      // as it was seen last
	logs      map[string]*yarnLog // of containers, by their ids and files
	collected map[string]bool     // containers whose logs were read in HDFS
	printed   bool
	failures  []error // why something could not be read, each reason once
}

// collectedOf prints the logs that were collected of a user's application, and reports whether there are any.
func (r *logReader) collectedOf(ctx context.Context, user string) bool {
	c := &collectedLogs{app: r.id, user: user, names: map[string]string{}, seen: map[string]bool{}}
	r.failed(c.print(ctx, r.session, r.h, r.lines))
	r.collected, r.printed = c.seen, len(c.seen) > 0
	return r.printed
}

// running prints what is new of the logs that NodeManagers have.
func (r *logReader) running(ctx context.Context) error {
	found, err := yarnLogs(ctx, r.h, r.id, r.app)
	if err != nil {
		return err
	}
	for _, l := range found {
		key := l.container.String() + l.file
		if r.collected[l.container.String()] {
			continue
		}
		if r.logs[key] == nil {
			r.logs[key] = l
		}
		n, err := r.copyYARNLog(ctx, r.h, r.logs[key], r.lines)
		r.printed = r.printed || n > 0
		r.failed(nodeError(l.node, err))
	}
	return nil
}

// failed notes why something could not be read.
func (r *logReader) failed(err error) {
	if err != nil && !slices.ContainsFunc(r.failures, func(e error) bool { return e.Error() == err.Error() }) {
		r.failures = append(r.failures, err)
	}
}

func (r *logReader) why() error { return errors.Join(r.failures...) }

// nodeError is why a NodeManager shows no log. That it has none is no error.
func nodeError(node string, err error) error {
	ae, ok := errors.AsType[*yarnclient.APIError](err)
	switch {
	case yarnclient.IsUnknown(err):
		return nil
	case ok && ae.Status == http.StatusInternalServerError: // the same for each of its logs
		err = fmt.Errorf("the NodeManager %s fails when it is to show a log (500): on a cluster that demands Kerberos, that is how one without Hadoop's native library does. "+
			"hadoop checknative -a tells on its host; without libhadoop.so it shows and collects no logs at all", node)
		if ae.Message != "" {
			err = fmt.Errorf("%w. It says: %s", err, ae.Message)
		}
	}
	return err
}

// end tells what could not be printed, and why; that is an error if nothing was.
func (r *logReader) end() error {
	why := r.why()
	if r.printed {
		if why != nil {
			fmt.Fprintf(r.env.Stderr, "heddle: warning: not all logs of %s could be read: %v\n", r.id, why)
		}
		return nil
	}
	if why != nil {
		err := fmt.Errorf("there is no log of %s to be had: %w", r.id, why)
		if errors.Is(why, collected.ErrFormat) {
			return precondition(err, "yarn logs -applicationId "+r.id.String()+" knows other formats")
		}
		return precondition(err)
	}
	if !r.app.Ended() {
		return precondition(fmt.Errorf("no NodeManager has a log of %s yet", r.id), "its containers may not have been started: heddle status "+r.id.String())
	}
	err := fmt.Errorf("no NodeManager has a log of %s any more, and none is in %s of HDFS", r.id, strings.Join(logRoots(r.h.conf), " or "))
	if on, cerr := r.h.conf.Bool("yarn.log-aggregation-enable", false); cerr == nil && !on {
		return precondition(err, "by the configuration here, the cluster does not collect logs when an application ends: yarn.log-aggregation-enable")
	}
	return precondition(err, "they are there some seconds after its end: try again", "they are removed after yarn.log-aggregation.retain-seconds")
}

// yarnLogs lists the logs of an application: of the containers that run, and of each attempt's master.
func yarnLogs(ctx context.Context, h *hadoop, id yarnid.Application, a yarnclient.App) ([]*yarnLog, error) {
	attempts, err := h.rm.Attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	var out []*yarnLog
	add := func(name, node, container string) {
		k, err := yarnid.ParseContainer(container)
		if err != nil || node == "" {
			return
		}
		for _, file := range []string{"stdout", "stderr"} {
			out = append(out, &yarnLog{name: name, node: node, container: k, file: file})
		}
	}
	names := agentNames(ctx, h, id, a)
	for i, t := range attempts {
		name := "appmaster"
		if len(attempts) > 1 {
			name = fmt.Sprintf("appmaster-%d", t.Number)
		}
		add(name, t.Node, t.Container)
		if i < len(attempts)-1 || a.Ended() {
			continue
		}
		attempt, err := yarnid.ParseAttempt(t.ID)
		if err != nil {
			continue
		}
		containers, err := h.rm.Containers(ctx, attempt)
		if err != nil {
			return nil, err
		}
		for _, k := range containers {
			if k.ID == t.Container {
				continue
			}
			name := names[k.ID]
			if name == "" {
				name = k.ID
			}
			add(name, strings.TrimPrefix(strings.TrimPrefix(k.NodeHTTP, "http://"), "https://"), k.ID)
		}
	}
	return out, nil
}

// agentNames are the names of agents by their containers, as far as the ApplicationMaster tells.
func agentNames(ctx context.Context, h *hadoop, id yarnid.Application, a yarnclient.App) map[string]string {
	names := map[string]string{}
	if a.State != yarnclient.StateRunning {
		return names
	}
	f := newFollower(h, id, "")
	defer f.close()
	f.address(ctx, a)
	snap, err := f.snapshot(ctx)
	if err != nil {
		return names
	}
	for _, g := range snap.Agents {
		names[g.Container] = g.ID
	}
	return names
}

// copyYARNLog prints what is new of a log and returns how many lines that is. What is not there yet, or any more, is no line.
func (s *session) copyYARNLog(ctx context.Context, h *hadoop, l *yarnLog, lines int) (int, error) {
	text, err := h.rm.Web().ContainerLog(ctx, l.node, l.container, l.file, logWindow)
	if err != nil {
		return 0, err
	}
	text = text[:strings.LastIndexByte(text, '\n')+1]
	fresh := text
	switch {
	case l.seen == "":
		fresh = lastLinesOf(text, lines)
	default:
		if i := strings.LastIndex(text, l.seen); i >= 0 {
			fresh = text[i+len(l.seen):]
		}
	}
	if text != "" {
		l.seen = text[max(0, len(text)-4096):]
	}
	return s.printLines(l.name, fresh)
}

// printLog prints the last lines of a log that is over; 0 lines mean all.
func (s *session) printLog(l *yarnLog, r io.Reader, lines int) (int, error) {
	if lines > 0 {
		text, err := io.ReadAll(io.LimitReader(r, logWindow))
		if err != nil {
			return 0, err
		}
		return s.printLines(l.name, lastLinesOf(whole(text), lines))
	}
	n := 0
	for in := bufio.NewReader(r); ; {
		line, err := in.ReadString('\n')
		if line != "" {
			if _, perr := s.printLines(l.name, line); perr != nil {
				return n, perr
			}
			n++
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// whole is a text whose last line ends, too.
func whole(text []byte) string {
	if n := len(text); n > 0 && text[n-1] != '\n' {
		text = append(text, '\n')
	}
	return string(text)
}

// printLines prints lines after the name of who wrote them, and returns how many there are.
func (s *session) printLines(name, text string) (n int, err error) {
	for line := range strings.Lines(text) {
		n++
		if _, err := fmt.Fprintf(s.out.w, "%s %s\n", s.out.paint(dim, name), printable(strings.TrimSuffix(line, "\n"))); err != nil {
			return n, err
		}
	}
	return n, nil
}

// lastLinesOf is the end of a text of whole lines; 0 lines mean all.
func lastLinesOf(text string, lines int) string {
	if lines <= 0 {
		return text
	}
	at := len(text)
	for range lines + 1 {
		at = strings.LastIndexByte(text[:at], '\n')
		if at < 0 {
			return text
		}
	}
	return text[at+1:]
}
