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

// ticketScheme is the scheme of a proof by a ticket. What identifies that goes before the parts of a proof.
const ticketScheme = "Heddle-Ticket "

// Ticket is what vouches for a caller who has not the application's token: one of YARN's, for a user. Its password is known to that user and to us.
// What the user may do, the Proxy's lists say, which may be long in answering: they are asked when the proof is good.
type Ticket struct {
	User     string
	Password []byte
}

// Secret is what a caller proves to have, without sending it.
type Secret struct {
	identifier []byte // of a ticket; nil: it is the application's token
	key        [sha256.Size]byte
}

// ByToken is the application's token.
func ByToken(token string) Secret { return Secret{key: sha256.Sum256([]byte(token))} }

// ByTicket is a ticket's password, with what identifies that ticket.
func ByTicket(identifier, password []byte) Secret { return Secret{identifier, sha256.Sum256(password)} }

// Prove adds to a request, whose body is given, a proof that its sender has the secret. The request must reach the server as it is, by no proxy that alters it, and by
// that channel (Meet), or by none. The returned function says what is wrong with who answers: nil, if the server has proven to have the secret too, or if there is no channel.
func (x Secret) Prove(r *http.Request, body []byte, channel *Channel) func(*http.Response) error {
	at, once := strconv.FormatInt(time.Now().Unix(), 10), rand.Text()
	given := at + " " + once + " " + base64.RawURLEncoding.EncodeToString(proof(x.key[:], at, once, r.Method, r.URL.RequestURI(), body, channel))
	if x.identifier == nil {
		given = proofScheme + given
	} else {
		given = ticketScheme + base64.RawURLEncoding.EncodeToString(x.identifier) + " " + given
	}
	r.Header.Set("Authorization", given)
	return func(resp *http.Response) error {
		if channel == nil {
			return nil
		}
		mac, err := base64.RawURLEncoding.DecodeString(resp.Header.Get(answerHeader))
		if err != nil || !hmac.Equal(mac, answerProof(x.key[:], once, channel)) {
			return errors.New("what answers there is not the ApplicationMaster: it does not prove to know the application's secret")
		}
		return nil
	}
}

// proof is the keyed hash of a request, and of the channel that it has to come by.
func proof(key []byte, at, once, method, uri string, body []byte, channel *Channel) []byte {
	m := hmac.New(sha256.New, key)
	sum := sha256.Sum256(body)
	fmt.Fprintf(m, "request\x00%s\x00%s\x00%s\x00%s\x00%x", at, once, method, uri, sum)
	if channel != nil {
		fmt.Fprintf(m, "\x00%x", channel.sum)
	}
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
	once, err := s.check(r, given, key, what)
	if err != nil {
		return nil, err
	}
	if ch := s.channelOf(r); ch != nil {
		c.answer = base64.RawURLEncoding.EncodeToString(answerProof(key, once, ch))
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

// check says what is wrong with a proof by a key, nil if nothing is, and its word that is used once.
func (s *Server) check(r *http.Request, given string, key []byte, what string) (once string, err error) {
	part := strings.Split(given, " ")
	if len(part) != 3 {
		return "", errors.New("a proof is a time, a word and a hash")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxAction+1))
	if err != nil || len(body) > maxAction {
		return "", errors.New("the request's body can't be read, or is too long")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	mac, err := base64.RawURLEncoding.DecodeString(part[2])
	if err != nil || !hmac.Equal(mac, proof(key, part[0], part[1], r.Method, r.RequestURI, body, s.channelOf(r))) {
		return "", errors.New("the proof is not that of " + what + " for this request")
	}
	at, err := strconv.ParseInt(part[0], 10, 64)
	now := time.Now()
	if off := now.Sub(time.Unix(at, 0)); err != nil || off.Abs() > proofLife {
		return "", fmt.Errorf("the clocks of caller and ApplicationMaster differ by %v", off.Round(time.Second))
	}
	if !s.proofs.first(part[1], now) {
		return "", errors.New("this proof was used before")
	}
	return part[1], nil
}
