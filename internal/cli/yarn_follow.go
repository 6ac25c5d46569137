package cli

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/explain"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// sight is what was seen of an application at one moment.
type sight struct {
	report   *yarnclient.App // of the ResourceManager; nil: it was not asked, or did not answer
	reportEr error
	snap     *appmaster.Snapshot // of the ApplicationMaster; nil: likewise
	snapErr  error
	page     string           // where people can look
	why      *explain.Finding // why it waits, if that is known and it has waited for a while
	// cancelErr is why the job could not be cancelled before that moment; nil: it was, or nobody wanted it.
	cancelErr error
}

// follower looks after an application on YARN: at its ApplicationMaster, by the address that this registered or else through the ResourceManager's web
// proxy, and at the ResourceManager's report. It is used by one goroutine.
type follower struct {
	// Immutable.
	h     *hadoop
	id    yarnid.Application
	token string        // of the application's REST API; "": not known, so that a ticket of YARN's or the proxy lets us in
	every time.Duration // between questions to the ResourceManager about an application that runs
	// attached says that this process waits for the application's end.
	attached bool

	direct, proxied *client   // nil: no address yet
	avoid           time.Time // until when the direct way is not tried
	asked           time.Time // when the ResourceManager answered last
	running         bool      // it said that the application runs
	state           string    // of the application, as it said
	master          string    // where the ApplicationMaster is, as it said

	patience        time.Duration    // of an application that waits, until it is asked why
	waits, wondered time.Time        // since when it does; when it was asked why
	why             *explain.Finding // what was found out
}

func newFollower(h *hadoop, id yarnid.Application, token string) *follower {
	return &follower{h: h, id: id, token: token, every: 2 * time.Second, patience: wonderAfter}
}

// attach lets the ApplicationMaster know that we wait for the end.
func (f *follower) attach() *follower {
	f.attached = true
	return f
}

// directTimeout is how long the ApplicationMaster may take to answer until the other way is tried.
const directTimeout = 2 * time.Second

// look asks the ApplicationMaster, if it runs, and the ResourceManager, if that is due or the other does not answer.
func (f *follower) look(ctx context.Context) sight {
	var s sight
	if f.running {
		s.snap, s.snapErr = f.snapshot(ctx)
	}
	if s.snap == nil || isFinal(s.snap.State) || time.Since(f.asked) > f.every {
		f.report(ctx, &s)
	}
	s.page = f.page()
	f.wonder(ctx, &s)
	return s
}

// isFinal reports whether a job in that state is over.
func isFinal(state string) bool {
	return state == "finished" || state == "failed" || state == "canceled"
}

// report asks the ResourceManager.
func (f *follower) report(ctx context.Context, s *sight) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	app, err := f.h.rm.App(ctx, f.id)
	if err != nil {
		s.reportEr = err
		return
	}
	s.report, f.asked, f.state = &app, time.Now(), app.State
	if running := app.State == yarnclient.StateRunning; running != f.running || running && app.AMAddress != f.master {
		f.running, f.master = running, app.AMAddress // a new attempt has another address
		f.close()
		f.direct, f.proxied = nil, nil
	}
	if f.running && f.direct == nil && f.proxied == nil {
		f.address(ctx, app)
	}
}

// address notes where the ApplicationMaster is.
func (f *follower) address(ctx context.Context, app yarnclient.App) {
	var ticket *token.Token
	if f.token == "" && f.h.id.Secure() {
		ticket = f.ticket(ctx)
	}
	if (f.token != "" || ticket != nil) && app.AMAddress != "" {
		f.direct = clientOf(f.id.String(), f.token)
		f.direct.ticket = ticket
		f.direct.web, f.direct.unsure = f.h.directWeb(app)
		if f.attached {
			f.direct.query = "?attached"
		}
		f.direct.http.Timeout = directTimeout
	}
	if u, err := url.Parse(app.TrackingURL); err == nil && u.Host != "" {
		f.proxied = clientOf(f.id.String(), "")
		f.proxied.http.Transport, _ = f.h.id.REST(nil)
		f.proxied.web = strings.TrimSuffix(app.TrackingURL, "/")
		f.proxied.cookie = proxyWarned(f.id)
		q := url.Values{"user.name": {f.h.user}, "proxyapproved": {"true"}}
		if real := f.h.id.Real(); real != "" {
			q.Set("doAs", f.h.user)
			if !f.h.id.Secure() {
				q.Set("user.name", real)
			}
		}
		if f.attached {
			q.Set("attached", "")
		}
		f.proxied.query = "?" + q.Encode()
	}
}

// proxyWarned is the cookie of who was warned by YARN's proxy that the application is another user's. Without it, a proxy that stands alone
// answers such a user with a page that warns, whatever proxyapproved says.
func proxyWarned(id yarnid.Application) *http.Cookie {
	return &http.Cookie{Name: "checked_" + id.String(), Value: "true"}
}

// ticketTimeout is how long the ResourceManager may take to give a ticket until the proxy has to do.
const ticketTimeout = 5 * time.Second

// ticket is YARN's word for who we are; nil: there is none, or its port for RPC is not for us.
func (f *follower) ticket(ctx context.Context) *token.Token {
	ctx, cancel := context.WithTimeout(ctx, ticketTimeout)
	defer cancel()
	t, err := f.h.rm.ClientToken(ctx, f.id)
	if err != nil {
		return nil
	}
	return t
}

var errNoWay = errors.New("the ResourceManager knows no address of the ApplicationMaster yet")

// ask asks the ApplicationMaster by the way that works.
func (f *follower) ask(ctx context.Context, question func(context.Context, *client) error) error {
	if f.direct == nil && f.proxied == nil {
		return errNoWay
	}
	var err error
	if f.direct != nil && (f.proxied == nil || time.Now().After(f.avoid)) {
		if err = question(ctx, f.direct); err == nil || f.proxied == nil {
			return err
		}
	}
	perr := question(ctx, f.proxied)
	if perr == nil {
		f.avoid = time.Now().Add(30 * time.Second) // that way works, the other does not
		return nil
	}
	return errors.Join(perr, err) // what the proxy says counts more
}

func (f *follower) snapshot(ctx context.Context) (snap *appmaster.Snapshot, err error) {
	err = f.ask(ctx, func(ctx context.Context, c *client) (err error) {
		snap, err = c.snapshot(ctx)
		return err
	})
	return snap, err
}

// cancel asks the ApplicationMaster to cancel the job; one that can't be asked is killed by YARN.
func (f *follower) cancel(ctx context.Context) error {
	err := f.ask(ctx, func(ctx context.Context, c *client) error { return c.cancel(ctx) })
	if err == nil {
		return nil
	}
	return f.h.rm.Kill(ctx, f.id, "cancelled by "+f.h.user)
}

// page is where people can look.
func (f *follower) page() string {
	if f.proxied != nil {
		return f.proxied.web + "/"
	}
	if f.direct != nil {
		return f.direct.web + "/"
	}
	return ""
}

func (f *follower) close() {
	for _, c := range []*client{f.direct, f.proxied} {
		if c != nil {
			c.close()
		}
	}
}
