// Package web serves an application's REST API and its dashboard. It only reads the snapshots that the master publishes,
// and passes on the wish to cancel.
//
//	GET /                     the dashboard; its parts are at /ui/
//	GET /api/job              the whole snapshot
//	GET /api/vertices         vertices; /api/vertices/{id} one of them
//	GET /api/agents           agents
//	GET /api/slots            slots of all agents
//	GET /api/containers       containers of agents, and how they ended
//	GET /api/profiles         profiles of processes; /api/profiles/{id}/data one of them
//	GET /api/configuration    options with their values, secrets masked, and origins
//	GET /api/logs/{name}      the last lines of the log of an agent, or of the appmaster
//	GET /api/session          what the caller may do, and the token that an action's body carries
//	PUT /api/job/cancel       asks for the end of the job
//	PUT /api/log-level        changes what is logged
//	PUT /api/profiles         begins a profile
//	PUT /api/tokens           says that fresh tokens were handed in
//
// Only GET and PUT are used, answers are JSON in one line, and addresses are relative, since YARN's web proxy passes on
// nothing else (Hadoop 3.4, WebAppProxyServlet).
//
// A request needs the application's token, as a bearer token or by a proof (Prove), unless it comes over this host's loopback from a process of
// the user who runs the application. Thus a browser beside it needs no secret in an address, and other users stay outside. Of an application on YARN,
// it needs the token, or to come through YARN's web proxy, from no other site's page, for a user who may (Proxy).
//
// It speaks HTTPS by the certificate that YARN gives it, where it does. The proxy is then known by its own certificate and callers by proofs that are bound
// to ours (Meet).
package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

// Config is what a Server needs to know.
type Config struct {
	Listener net.Listener // the server closes it
	Token    string       // must not be empty
	// Advertise is the host that others reach the listener by; "": the listener's own address.
	Advertise string
	// Owner tells which user's process is at the other end of a connection within this host. Nil: by the kernel's tables.
	Owner   func(remote, local netip.AddrPort) (uid int, ok bool)
	Options func() []Option                     // the configuration in force; nil: not shown
	Log     func(name string) ([]string, error) // the last lines of a log; an error for people. Nil: not shown
	Logger  *slog.Logger                        // nil: discards
	// Certificate is what the server speaks HTTPS with; nil: it speaks HTTP.
	Certificate *tls.Certificate
	Proxy       *Proxy // whose word is taken for who asks; nil: nobody's
	// Ticket tells whose a ticket is by what identifies it (ProveBy), an error if it is none of this application's; Proxy says what they may do.
	// Nil: there are no tickets.
	Ticket func(identifier []byte) (Ticket, error)
	// TokensThere has the ApplicationMaster look for tokens that were handed in where it expects them. It returns at once. Nil: it expects none.
	TokensThere func()
}

// Option is an option as the dashboard shows it.
type Option struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // masked if it is a secret
	Origin string `json:"origin"`
	Doc    string `json:"doc"`
}

// Server implements appmaster.Front.
type Server struct {
	// Immutable after New.
	cfg   Config
	token [sha256.Size]byte // so that comparing takes the same time for any length
	http  *http.Server
	// channel and tls are of HTTPS; nil: there is none.
	channel *Channel
	tls     *tls.Config
	wg      sync.WaitGroup // the serving goroutine

	attached attachment
	proofs   proofs

	// Set by Start, before it serves.
	view appmaster.View
}

// New returns a server that does not serve yet.
func New(cfg Config) (*Server, error) {
	if cfg.Token == "" {
		return nil, errors.New("cannot serve the dashboard without a token")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Owner == nil {
		cfg.Owner = ownerOf
	}
	s := &Server{attached: attachment{saw: make(chan struct{})}, cfg: cfg, token: sha256.Sum256([]byte(cfg.Token))}
	if cfg.Certificate != nil {
		var err error
		if s.channel, s.tls, err = serverChannel(cfg.Certificate, cfg.Proxy); err != nil {
			return nil, err
		}
	}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// Start implements appmaster.Front.
func (s *Server) Start(view appmaster.View) (string, error) {
	s.view = view
	s.wg.Go(func() {
		if err := s.http.Serve(s.listener()); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Logger.Error("the dashboard is not served any more", "error", err)
		}
	})
	addr := reachable(s.cfg.Listener.Addr().String())
	if _, port, err := net.SplitHostPort(addr); err == nil && s.cfg.Advertise != "" {
		addr = net.JoinHostPort(s.cfg.Advertise, port)
	}
	return s.scheme() + "://" + addr + "/", nil
}

// reachable puts this host's name where addr stands for all of its addresses.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return addr
	}
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	return net.JoinHostPort(name, port)
}

// Close implements appmaster.Front.
func (s *Server) Close(ctx context.Context) error {
	s.attached.linger(ctx)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("cannot end the dashboard in time: %w", err), s.http.Close())
	}
	s.wg.Wait()
	return err
}

// guard lets nobody in without the token, and sets the headers that every answer has.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		p, err := s.proven(r)
		if p != nil {
			r = r.WithContext(context.WithValue(r.Context(), provenKey{}, p))
			if p.answer != "" {
				h.Set(answerHeader, p.answer)
			}
		}
		c, ok := s.who(r)
		if !ok {
			h.Set("WWW-Authenticate", `Bearer realm="heddle"`)
			fail(w, http.StatusUnauthorized, "%s", s.refusal(err))
			return
		}
		if c.proxied {
			if why := s.cfg.Proxy.foreign(r); why != "" {
				s.cfg.Logger.Warn("refused a request that another site's page had a browser send", "user", c.user, "path", r.URL.Path, "why", why)
				fail(w, http.StatusForbidden, "refused: %s", why)
				return
			}
		}
		state := s.view.Snapshot().State // of what is served, or one before
		next.ServeHTTP(w, r)
		s.attached.note(r, state)
	})
}

// provenKey is the context's key of a request whose proof was good.
type provenKey struct{}

// proven is who a request's proof was of; nil: it had none that was good.
func proven(r *http.Request) *caller {
	c, _ := r.Context().Value(provenKey{}).(*caller)
	return c
}

// refusal tells a caller who is not let in how to get in.
func (s *Server) refusal(err error) string {
	switch {
	case err != nil:
		return err.Error()
	case s.cfg.Proxy != nil:
		return "this page is reached through the ResourceManager's web proxy, by those who may see the application, or with the application's token (Authorization: Bearer …)"
	}
	return "this needs the application's token (Authorization: Bearer …), or a browser of the same user on the same host"
}

// bearer reports whether a request has the application's token.
func (s *Server) bearer(r *http.Request) bool {
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum := sha256.Sum256([]byte(given))
	return ok && subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1
}

func reply(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		fail(w, http.StatusInternalServerError, "cannot encode the answer: %v", err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // the client is gone if this fails
}

// fail answers with an error in JSON.
func fail(w http.ResponseWriter, code int, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": fmt.Sprintf(format, args...)})
}
