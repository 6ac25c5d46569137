package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// watcher looks at the processes of a run ten times a second: the client, containers on this host, and the cluster's daemons if they are ours.
type watcher struct {
	client    int
	daemons   map[string]int
	before    map[int]bool // processes that were there at the start
	container map[int]yarnid.Container
	looks     []look
	peak      int64 // of the client's memory
	stop      chan struct{}
	done      chan struct{}
}

// look is the processor time of each process until then.
type look struct {
	at  time.Time
	cpu map[int]time.Duration
}

// watch begins; the client may start after it.
func (c *cluster) watch() *watcher {
	w := &watcher{daemons: c.daemons, before: map[int]bool{}, container: map[int]yarnid.Container{}, stop: make(chan struct{}), done: make(chan struct{})}
	for _, pid := range processes() {
		w.before[pid] = true
	}
	w.look()
	return w
}

// follow looks until end, which must be called.
func (w *watcher) follow(client int) {
	w.client = client
	go func() {
		defer close(w.done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				w.look()
			}
		}
	}()
}

func (w *watcher) end() {
	close(w.stop)
	<-w.done
}

func (w *watcher) look() {
	l := look{at: time.Now(), cpu: map[int]time.Duration{}}
	keep := func(pid int) {
		if d, ok := cpuOf(pid); ok {
			l.cpu[pid] = d
		} else if n := len(w.looks); n > 0 { // it has ended
			l.cpu[pid] = w.looks[n-1].cpu[pid]
		}
	}
	for _, pid := range w.daemons {
		keep(pid)
	}
	if w.client > 0 {
		keep(w.client)
		w.peak = max(w.peak, memory(w.client, "VmHWM:"))
	}
	for _, pid := range processes() {
		if w.before[pid] || pid == w.client {
			continue
		}
		if _, ok := w.container[pid]; !ok {
			if w.container[pid], ok = containerOf(pid); !ok {
				delete(w.container, pid) // it may yet become one
				continue
			}
		}
		// What has ended was waited for by its parent, whose time includes it then.
		if d, ok := cpuOf(pid); ok {
			l.cpu[pid] = d
		}
	}
	w.looks = append(w.looks, l)
}

// The kinds of processes.
const (
	client = "client"
	master = "ApplicationMaster"
	agents = "agents"
	hadoop = "Hadoop"
)

// spent is the processor time between the start and a moment, by kind of process, of an application.
func (w *watcher) spent(app yarnid.Application, until time.Time) map[string]time.Duration {
	last := w.looks[len(w.looks)-1]
	for _, l := range w.looks {
		if !l.at.Before(until) {
			last = l
			break
		}
	}
	sum := map[string]time.Duration{}
	for pid, d := range last.cpu {
		kind := w.kind(pid, app)
		if kind == hadoop {
			d -= w.looks[0].cpu[pid]
		}
		sum[kind] += d
	}
	delete(sum, "")
	return sum
}

func (w *watcher) kind(pid int, app yarnid.Application) string {
	if pid == w.client {
		return client
	}
	for _, d := range w.daemons {
		if pid == d {
			return hadoop
		}
	}
	switch c := w.container[pid]; {
	case c.Attempt.App != app:
		return ""
	case c.Number == 1:
		return master
	}
	return agents
}

// resident is the memory in use now of the largest process of a kind.
func (w *watcher) resident(app yarnid.Application) map[string]int64 {
	most := map[string]int64{client: w.peak}
	for pid := range maps.Keys(w.container) {
		if kind := w.kind(pid, app); kind != "" {
			most[kind] = max(most[kind], memory(pid, "VmRSS:"))
		}
	}
	return most
}

func processes() (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func proc(pid int, file string) []byte {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
	return b
}

// containerOf is the container of YARN's that a process runs in.
func containerOf(pid int) (yarnid.Container, bool) {
	for entry := range bytes.SplitSeq(proc(pid, "environ"), []byte{0}) {
		if name, ok := strings.CutPrefix(string(entry), "CONTAINER_ID="); ok {
			id, err := yarnid.ParseContainer(name)
			return id, err == nil
		}
	}
	return yarnid.Container{}, false
}

// cpuOf is the processor time of a process and of its children that have ended.
func cpuOf(pid int) (time.Duration, bool) {
	_, rest, ok := strings.Cut(string(proc(pid, "stat")), ") ")
	f := strings.Fields(rest)
	if !ok || len(f) < 15 || f[0] == "Z" {
		return 0, false
	}
	ticks := 0
	for _, s := range f[11:15] {
		n, _ := strconv.Atoi(s)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, true
}

// memory is a figure of a process's status, in bytes.
func memory(pid int, name string) int64 {
	_, rest, ok := strings.Cut(string(proc(pid, "status")), name)
	f := strings.Fields(rest)
	if !ok || len(f) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(f[0], 10, 64)
	return n << 10
}
