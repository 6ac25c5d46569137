package web

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestSlowConsumer: a function that is slow shows as waiting for credit at the edge before it, and at no other: in the graph, in the bars of the
// latency page and among the subtasks of the vertex before it.
func TestSlowConsumer(t *testing.T) {
	testbed.Group(t, "web")
	b := testbed.New(t)
	program := testbed.BuildProgram(t, b, "./itest/jaeger/job", "job")
	job := b.Start(testbed.Spec{Name: "job", Path: program, Args: []string{"run", "--agents", "2", "-D", "agent.slots=1", "-D", "parallelism=2",
		"-D", "state-dir=" + b.Dir("state"), "-D", "trace.sample-rate=20", "-D", "itest.pause=5ms", "-D", "exchange.segment-bytes=1KiB",
		"-D", "exchange.exclusive=1", "-D", "exchange.floating=0", "-D", "exchange.max-per-channel=1", "-D", "exchange.max-per-subpartition=4"}})
	t.Cleanup(func() {
		job.Signal(syscall.SIGINT)
		if code := job.Wait(time.Minute); code != 6 {
			t.Errorf("the job ended with exit code %d, want 6 (cancelled)\n%s", code, job.Tail(20))
		}
	})
	var at string
	b.Eventually("the job's dashboard", patience, func() error {
		if at = address.FindString(job.Output()); at == "" {
			return fmt.Errorf("no address yet in: %s", job.Tail(5))
		}
		return nil
	})
	p := open(t, at, 1400, 900)
	p.await("that records wait for credit at the first edge", `document.querySelector(".graph .edge.waits[data-key='e0-1'] .wait")?.textContent.startsWith("credit ")`)
	if n := eval[int](p, `document.querySelectorAll(".graph .edge.waits").length`); n != 1 {
		t.Errorf("records wait for credit at %d edges, want the first alone", n)
	}
	p.picture("slow-overview")
	p.script(`location.hash = "#/latency"`)
	// hue1 is the colour of waiting for credit: see latency.js.
	p.await("the bars of both edges", `document.querySelectorAll("main .stack").length === 2`)
	p.await("most of the first bar in the colour of waiting for credit, and not of the second", `(() => {
		const share = (i) => parseFloat([...document.querySelectorAll("main .stack")][i].querySelectorAll("i")[2].style.width);
		return share(0) > 50 && share(1) < 50;
	})()`)
	p.picture("slow-latency")
	p.script(`location.hash = "#/vertex/0"`)
	p.await("a channel that waits for credit", `document.querySelector("main table td .starved")`)
	p.picture("slow-vertex")
	p.clean()
}
