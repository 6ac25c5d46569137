package web

import (
	"sync/atomic"
	"testing"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestAway: a page whose ApplicationMaster is killed says so, shows what was last known as that, asks ever more seldom, and goes on when there is
// an answer again.
func TestAway(t *testing.T) {
	testbed.Group(t, "web")
	var dead atomic.Bool
	p := open(t, proxied(t, &fake{snapshot: big()}, func() bool { return !dead.Load() }), 1400, 900)
	p.await("the graph", `document.querySelectorAll(".graph .vertex").length === 5`)
	p.script(`(() => { const f = fetch; window.asked = []; window.fetch = (...a) => { asked.push(performance.now()); return f(...a); }; })()`)
	dead.Store(true)
	p.await("that nobody answers", `!document.querySelector("#notice").hidden && document.querySelector("#notice").textContent.startsWith("No answer since")`)
	p.script(`asked.length = 0`)
	p.await("three more questions", `asked.length >= 3`)
	// Timers never run early: the second failure is followed by at least 2 s, and so on.
	if gaps := eval[[]float64](p, `asked.slice(1, 3).map((t, i) => t - asked[i])`); gaps[0] < 1900 || gaps[1] < gaps[0]+500 {
		t.Errorf("the page asks again after %.0f ms and %.0f ms", gaps[0], gaps[1])
	}
	if !eval[bool](p, `document.body.classList.contains("stale") && document.querySelectorAll(".graph .vertex").length === 5`) {
		t.Error("the page does not show what was last known, or not as that")
	}
	p.picture("away")
	dead.Store(false)
	p.await("the running job", `document.querySelector("#notice").hidden && !document.body.classList.contains("stale")`)
}
