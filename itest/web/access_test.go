package web

import (
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// accessible: what can be used has a name for those who hear the page, figures that are drawn are told, and there is one main heading.
func accessible(p *page, name string) {
	p.t.Helper()
	mute := eval[string](p, `[...document.querySelectorAll("a[href], button, input, [role=img], img, table, [tabindex='0']")].filter((e) =>
		!(e.getAttribute("aria-label") || e.getAttribute("alt") || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 120)).join("\n")`)
	if mute != "" {
		p.t.Errorf("on the page %s these have no name:\n%s", name, mute)
	}
	if n := eval[int](p, `document.querySelectorAll("h1").length`); n != 1 {
		p.t.Errorf("the page %s has %d main headings", name, n)
	}
	if bad := eval[string](p, `[...document.querySelectorAll("main table")].filter((t) => !t.caption?.textContent || [...t.tHead.querySelectorAll("th")].some((c) => c.scope !== "col")).map((t) => t.outerHTML.slice(0, 120)).join("\n")`); bad != "" {
		p.t.Errorf("on the page %s these tables lack a caption or heads:\n%s", name, bad)
	}
}

// legible: text stands out from what is behind it, by the measure of WCAG's level AA.
func legible(p *page, name string) {
	p.t.Helper()
	faint := eval[string](p, `(() => {
		const rgb = (c) => { const n = c.match(/[\d.]+/g).map(Number); return { c: n.slice(0, 3), a: n[3] ?? 1 }; };
		const light = (c) => c.map((x) => x / 255).map((x) => (x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4)).reduce((n, x, i) => n + x * [.2126, .7152, .0722][i], 0);
		const behind = (e) => { for (; e; e = e.parentElement) { const b = rgb(getComputedStyle(e).backgroundColor); if (b.a === 1) return b.c; } return [255, 255, 255]; };
		const out = new Map();
		for (const e of document.body.querySelectorAll("*")) {
			if (e.closest("svg, :disabled, dialog:not([open])") || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
			const s = getComputedStyle(e), [a, b] = [light(rgb(s.color).c), light(behind(e))].sort((a, b) => b - a);
			const large = parseFloat(s.fontSize) >= 24 || parseFloat(s.fontSize) >= 18.66 && s.fontWeight >= 700;
			const ratio = (a + .05) / (b + .05);
			if (ratio < (large ? 3 : 4.5)) out.set(e.tagName + "." + e.className, ratio.toFixed(2) + " " + e.textContent.slice(0, 40));
		}
		return [...out].map((x) => x.join(": ")).join("\n");
	})()`)
	if faint != "" {
		p.t.Errorf("on the page %s these are hard to read:\n%s", name, faint)
	}
}

// TestKeyboard: everything can be reached and done without a mouse.
func TestKeyboard(t *testing.T) {
	testbed.Group(t, "web")
	p := open(t, serve(t, &fake{snapshot: big()}), 1400, 900)
	p.await("the graph", `document.querySelectorAll(".graph .vertex").length === 5`)
	p.do(chromedp.KeyEvent("4"))
	p.await("the fourth page", `location.hash === "#/containers" && document.querySelector("nav [aria-current=page]").textContent === "Containers"`)
	p.await("the focus on what is new", `document.activeElement.id === "main"`)
	p.do(chromedp.KeyEvent("1"))
	p.await("the first page", `document.querySelector(".graph .vertex")`)
	p.script(`document.querySelector(".graph .vertex").focus()`)
	p.await("the focus to be seen", `getComputedStyle(document.activeElement.querySelector("rect")).strokeWidth !== "0px"`)
	p.do(chromedp.KeyEvent("\r"))
	p.await("the vertex", `location.hash.startsWith("#/vertex/")`)
	p.script(`document.querySelector("button.sort[data-sort=n]").focus()`)
	p.do(chromedp.KeyEvent("\r"))
	p.await("the table in order", `document.querySelector("th[aria-sort=descending]")`)
	p.await("the focus where it was", `document.activeElement.dataset.sort === "n"`)
	p.do(chromedp.KeyEvent("t"))
	p.await("the other theme", `document.documentElement.dataset.theme`)
	p.clean()
}

// TestBrokenAddress: an address that was cut short leads to a page that says so, and is not taken for an ApplicationMaster that does not answer.
func TestBrokenAddress(t *testing.T) {
	testbed.Group(t, "web")
	p := open(t, serve(t, &fake{snapshot: big()}), 1400, 900)
	p.await("the graph", `document.querySelectorAll(".graph .vertex").length === 5`)
	p.script(`location.hash = "#/vertex/%E6%"`)
	p.await("that there is none", `document.querySelector("main").textContent.includes("There is no vertex %E6%")`)
	p.await("no complaint", `document.getElementById("notice").hidden`)
	p.clean()
}

// TestTabOrder: the tab key goes through the page from its top, each stop is to be seen, and the first of them skips what each page begins with.
func TestTabOrder(t *testing.T) {
	testbed.Group(t, "web")
	f := &fake{snapshot: big(), canceled: make(chan string, 1)}
	p := open(t, serve(t, f), 1400, 900)
	p.await("the graph", `document.querySelectorAll(".graph .vertex").length === 5`)
	var stops []string
	for range 19 {
		p.do(chromedp.KeyEvent("\t"))
		stops = append(stops, eval[string](p, `(() => {
			const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
			const ring = s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || e.matches(".vertex") && parseFloat(getComputedStyle(e.querySelector("rect")).strokeWidth) >= 2;
			const name = e.matches(".vertex") ? "vertex" : (e.getAttribute("aria-label") || e.textContent).trim();
			return name + (ring && box.width > 0 && box.right > 0 && box.left < innerWidth ? "" : " (not to be seen)");
		})()`))
	}
	want := []string{"Skip to the content", "Light or dark", "Cancel job", "Overview", "Slots", "Agents", "Containers", "Latency", "Logs", "Configuration",
		"The job graph, scrolls", "vertex", "vertex", "vertex", "vertex", "vertex", "Vertex", "Busy, blocked", "Records in"}
	if !slices.Equal(stops, want) {
		t.Errorf("the tab key stops at\n%q, want\n%q", stops, want)
	}
	p.script(`location.hash = "#/latency"`)
	p.await("the page", `document.querySelector(".stack")`)
	p.script(`document.querySelector(".skip").focus()`)
	p.do(chromedp.KeyEvent("\r"))
	p.await("the focus on the content of the same page", `document.activeElement.id === "main" && location.hash === "#/latency"`)
	p.clean()
}

// TestEscape: who thinks better of it presses Esc, also when he had said yes before.
func TestEscape(t *testing.T) {
	testbed.Group(t, "web")
	f := &fake{snapshot: big(), canceled: make(chan string, 9)}
	p := open(t, serve(t, f), 1400, 900)
	ask := func() {
		p.await("the button", `document.querySelector("header button[data-do=cancel]")`)
		p.script(`document.querySelector("header button[data-do=cancel]").focus()`)
		p.do(chromedp.KeyEvent("\r"))
		p.await("the question, with the focus on what does no harm", `document.querySelector("#ask").open && document.activeElement.value === "no"`)
	}
	ask()
	p.do(chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r"))
	select {
	case <-f.canceled:
	case <-time.After(patience):
		t.Fatal("the job is not cancelled from the keyboard")
	}
	ask()
	p.do(chromedp.KeyEvent("4"))
	p.do(chromedp.KeyEvent("\u001b"))
	p.await("the page as it was, with the focus where it was", `!document.querySelector("#ask").open && document.activeElement.dataset.do === "cancel" && !location.hash.includes("containers")`)
	p.script(`fetch("api/session").then(() => (window.later = true))`) // what the page might ask for goes out before this
	p.await("an answer", `window.later`)
	if len(f.canceled) > 0 {
		t.Error("Esc cancels the job")
	}
	p.clean()
}
