package web

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// proofScheme is the scheme of an Authorization header by which a caller proves to have the application's token without sending it: connections
// within a cluster are not encrypted. Its parts are the time in seconds, a word that is used once, and a keyed hash of both and of the request.
const proofScheme = "Heddle-Proof "

// proofLife is how much the clocks of caller and server may differ, and thus how long a proof could be played back if it were not remembered.
const proofLife = 5 * time.Minute

// Prove adds to a request, whose body is given, a proof that its sender has the application's token. The request must reach the server as it is, by no
// proxy that alters it.
func Prove(r *http.Request, body []byte, token string) {
	r.Header.Set("Authorization", proofScheme+prove(r, body, []byte(token)))
}

// ticketScheme is the scheme of a proof by a ticket. What identifies that goes before the parts of a proof.
const ticketScheme = "Heddle-Ticket "

// Ticket is what vouches for a caller who has not the application's token: one of YARN's, for a user. Its password is known to that user and to us.
// What the user may do, the Proxy's lists say, which may be long in answering: they are asked when the proof is good.
type Ticket struct {
	User     string
	Password []byte
}

// ProveBy is Prove by a ticket.
func ProveBy(r *http.Request, body, identifier, password []byte) {
	r.Header.Set("Authorization", ticketScheme+base64.RawURLEncoding.EncodeToString(identifier)+" "+prove(r, body, password))
}

func prove(r *http.Request, body, secret []byte) string {
	at, once := strconv.FormatInt(time.Now().Unix(), 10), rand.Text()
	key := sha256.Sum256(secret)
	return at + " " + once + " " + base64.RawURLEncoding.EncodeToString(proof(key[:], at, once, r.Method, r.URL.RequestURI(), body))
}

func proof(key []byte, at, once, method, uri string, body []byte) []byte {
	m := hmac.New(sha256.New, key)
	sum := sha256.Sum256(body)
	fmt.Fprintf(m, "request\x00%s\x00%s\x00%s\x00%s\x00%x", at, once, method, uri, sum)
	return m.Sum(nil)
}

// proofs are those that were taken: each is good once.
type proofs struct {
	mu    sync.Mutex // guards what follows
	taken map[string]time.Time
	swept time.Time
}

// first reports whether a proof, which is good, has not been seen before.
func (p *proofs) first(once string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.swept) > proofLife {
		p.swept = now
		for k, at := range p.taken {
			if now.Sub(at) > 2*proofLife { // made when the caller's clock was ahead
				delete(p.taken, k)
			}
		}
	}
	if _, seen := p.taken[once]; seen {
		return false
	}
	if p.taken == nil {
		p.taken = map[string]time.Time{}
	}
	p.taken[once] = now
	return true
}

// proven tells who a request's proof, which was never used, is of, and puts its body back. It is asked once for each request; nil: it has no proof.
func (s *Server) proven(r *http.Request) (*caller, error) {
	given := r.Header.Get("Authorization")
	key, c, what := s.token[:], &caller{modify: true}, "the application's token"
	if rest, ok := strings.CutPrefix(given, ticketScheme); ok {
		t, rest, err := s.ticket(rest)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(t.Password)
		key, c, what, given = sum[:], &caller{user: t.User}, "the ticket", rest
	} else if given, ok = strings.CutPrefix(given, proofScheme); !ok {
		return nil, nil
	}
	if err := s.check(r, given, key, what); err != nil {
		return nil, err
	}
	if !c.modify {
		c.modify = s.cfg.Proxy.Modify(c.user)
		c.barred = !c.modify && !s.cfg.Proxy.View(c.user)
	}
	return c, nil
}

// ticket is the ticket that a proof begins with, and the rest of that.
func (s *Server) ticket(given string) (t Ticket, rest string, err error) {
	if s.cfg.Ticket == nil || s.cfg.Proxy == nil {
		return t, "", errors.New("no tickets are taken here")
	}
	text, rest, _ := strings.Cut(given, " ")
	id, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return t, "", errors.New("the ticket can't be read")
	}
	t, err = s.cfg.Ticket(id)
	return t, rest, err
}

// check says what is wrong with a proof by a key, nil if nothing is.
func (s *Server) check(r *http.Request, given string, key []byte, what string) error {
	part := strings.Split(given, " ")
	if len(part) != 3 {
		return errors.New("a proof is a time, a word and a hash")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAction+1))
	if err != nil || len(body) > maxAction {
		return errors.New("the request's body can't be read, or is too long")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	mac, err := base64.RawURLEncoding.DecodeString(part[2])
	if err != nil || !hmac.Equal(mac, proof(key, part[0], part[1], r.Method, r.RequestURI, body)) {
		return errors.New("the proof is not that of " + what + " for this request")
	}
	at, err := strconv.ParseInt(part[0], 10, 64)
	now := time.Now()
	if off := now.Sub(time.Unix(at, 0)); err != nil || off.Abs() > proofLife {
		return fmt.Errorf("the clocks of caller and ApplicationMaster differ by %v", off.Round(time.Second))
	}
	if !s.proofs.first(part[1], now) {
		return errors.New("this proof was used before")
	}
	return nil
}
