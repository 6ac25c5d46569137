package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/conf"
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

// logsYARN prints the logs of an application's running containers, as their NodeManagers have them, and those of its masters.
func (s *session) logsYARN(ctx context.Context, id yarnid.Application, lines int, follow bool) error {
	return s.withYARN(func(_ *conf.Config, h *hadoop) error {
		if h.rm.Web() == nil {
			return usage(errors.New("logs are to be had from web services only: yarn.client is rpc"))
		}
		logs := map[string]*yarnLog{}
		printed := false
		for {
			a, err := h.app(ctx, id)
			if err != nil {
				return yarnError(err)
			}
			found, err := yarnLogs(ctx, h, id, a)
			if err != nil {
				return yarnError(err)
			}
			var last error
			for _, l := range found {
				key := l.container.String() + l.file
				if logs[key] == nil {
					logs[key] = l
				}
				n, err := s.copyYARNLog(ctx, h, logs[key], lines)
				printed = printed || n > 0
				if err != nil {
					last = err
				}
			}
			if !follow || a.Ended() {
				if !printed {
					return precondition(errors.Join(fmt.Errorf("no NodeManager has a log of %s any more", id), last), "YARN collects logs when an application ends: yarn logs -applicationId "+id.String())
				}
				return nil
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
	n := 0
	for line := range strings.Lines(fresh) {
		n++
		if _, err := fmt.Fprintf(s.out.w, "%s %s\n", s.out.paint(dim, l.name), printable(strings.TrimSuffix(line, "\n"))); err != nil {
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
