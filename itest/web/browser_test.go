package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// patience bounds each wait for the browser; on a busy machine it is slow.
const patience = 60 * time.Second

// page is a tab of a browser that notes what goes wrong in it.
type page struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // guarded by mu: exceptions and error lines of the console
}

// open starts a browser with one tab at url.
func open(t *testing.T, url string, width, height int64) *page {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		testbed.Need(t, map[string]string{"chromium": "install the package chromium"})
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(patience), chromedp.Flag("no-proxy-server", true))
	alloc, cancelAlloc := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(cancelAlloc)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // starts the browser, whose life must not have a time limit
		t.Fatal(err)
	}
	messages := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleException || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning {
				p.fault(fmt.Sprint(m))
			}
		}
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	if _, err := chromedp.Call(ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	return p
}

func (p *page) fault(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, text)
}

// clean fails the test if anything went wrong in the page.
func (p *page) clean() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) > 0 {
		p.t.Errorf("in the browser's console:\n%s", strings.Join(p.faults, "\n"))
	}
}

func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// script runs a script for what it does.
func (p *page) script(text string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](text))
}

func run[T any](p *page, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// eval returns the value of a script.
func eval[T any](p *page, script string) T {
	p.t.Helper()
	v, err := run(p, chromedp.Evaluate[T](script))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// await waits until a script is true.
func (p *page) await(what, script string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; {
		ok, err := run(p, chromedp.Evaluate[bool]("!!("+script+")"))
		if ok {
			return
		}
		if time.Now().After(end) {
			text, _ := run(p, chromedp.Evaluate[string](`document.body.innerText.slice(0, 2000)`))
			p.t.Fatalf("the page never shows %s (%v); it shows:\n%s", what, err, text)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// spends returns what do has the page's main thread spend, in processor time: other than the length of a long task, it
// does not grow with what else the machine does.
func (p *page) spends(what string, do func()) time.Duration {
	p.t.Helper()
	before := p.spent()
	do()
	spent := p.spent() - before
	if spent <= 0 {
		p.t.Fatalf("the browser counts no processor time for %s", what)
	}
	return spent
}

// spent is the processor time of the page's main thread since it began.
func (p *page) spent() time.Duration {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	r, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range r.Metrics {
		if m.Name == "TaskDuration" {
			return time.Duration(m.Value * float64(time.Second))
		}
	}
	p.t.Fatal("the browser does not tell how long its tasks took")
	return 0
}

// theme makes the browser ask for a light or dark page.
func (p *page) theme(name string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	if err != nil {
		p.t.Fatal(err)
	}
}

// picture keeps a screenshot in out/itest/web of the module.
func (p *page) picture(name string) {
	p.t.Helper()
	png, err := run(p, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatal(err)
	}
	root, err := testbed.ModuleRoot()
	if err != nil {
		p.t.Fatal(err)
	}
	dir := filepath.Join(root, "out", "itest", "web")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
