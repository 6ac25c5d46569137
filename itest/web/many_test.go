package web

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// manySplits is a job with huge names that reads 10,000 splits.
func manySplits() func() *appmaster.Snapshot {
	var polls atomic.Int64
	long := strings.Repeat("sehr_langer_name", 40) + " – 名前 שם اسم \u202egnp.exe"
	start := time.Now()
	return func() *appmaster.Snapshot {
		n := polls.Add(1)
		s := &appmaster.Snapshot{App: "application_1_0001", Job: long, State: "running", Since: start, Started: start, Time: time.Now(),
			Vertices: []appmaster.Vertex{{Name: long, Parallelism: 1, Tasks: map[string]int{"running": 1}, Subtasks: []appmaster.Subtask{{State: "running", Agent: "agent-1"}}}},
			Agents:   []appmaster.Agent{{ID: "agent-1", Host: strings.Repeat("host.", 50), State: "alive"}}}
		src := appmaster.Source{Name: long}
		for i := range 10_000 {
			src.Splits = append(src.Splits, appmaster.Split{ID: fmt.Sprintf("topic-%05d", i), Position: n * 100, End: n*100 + int64(i)})
		}
		s.Sources = []appmaster.Source{src}
		return s
	}
}

// TestMany: a source of 10,000 splits leaves the page alive, the reader finds the slowest of all, and huge names stay within the window.
func TestMany(t *testing.T) {
	testbed.Group(t, "web")
	p := open(t, serve(t, &fake{snapshot: manySplits()}), 1400, 900)
	p.await("the graph", `document.querySelectorAll(".graph .vertex").length === 1`)
	for _, name := range []string{"overview", "vertex/0", "slots", "agents", "sources"} {
		p.script(`location.hash = "#/` + name + `"`)
		p.await("the page", `document.querySelector("main").textContent.length > 20`)
		fits(p, name)
		p.do(chromedp.EmulateViewport(400, 800))
		fits(p, name)
		p.do(chromedp.EmulateViewport(1400, 900))
		if name != "sources" {
			p.picture("names-" + pictureOf(name))
		}
	}
	p.await("some of the splits", `document.querySelectorAll("main tbody tr").length === 250 && document.querySelector("main").textContent.includes("of 10\u202f000")`)
	spent := p.spends("the order of splits", func() {
		p.script(`document.querySelector("button.sort[data-sort=l]").click()`)
		p.await("the slowest first", `document.querySelector("main tbody th").textContent === "topic-09999"`)
	})
	t.Logf("putting 10,000 splits in order costs the browser %.0f ms", spent.Seconds()*1e3)
	if spent > time.Second {
		t.Errorf("putting 10,000 splits in order costs the browser %v", spent)
	}
	p.script(`document.querySelector("button[data-do=more]").click()`)
	p.await("more of them", `document.querySelectorAll("main tbody tr").length === 500`)
	p.picture("many-splits")
	p.clean()
}
