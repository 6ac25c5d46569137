package kafka

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// handshake listens to what sarama says while it opens a connection, to learn how long the broker will believe who we are:
// sarama keeps that to itself. It is passed on by the last answer to SaslAuthenticate.
type handshake struct {
	mu       sync.Mutex
	requests []apiVersion // guarded by mu: in the order sent
	in       []byte       // guarded by mu: answers
}

// apiVersion begins a request.
type apiVersion struct{ key, version int16 }

// maxHandshake bounds what is kept of a handshake. None is near it.
const maxHandshake = 1 << 20

// saslAuthenticate is the number of the request that proves who we are.
const saslAuthenticate = 36

// wrote notes a request. sarama writes each by one call.
func (h *handshake) wrote(b []byte) {
	if len(b) < 8 {
		return
	}
	h.mu.Lock()
	h.requests = append(h.requests, apiVersion{int16(binary.BigEndian.Uint16(b[4:])), int16(binary.BigEndian.Uint16(b[6:]))})
	h.mu.Unlock()
}

// read notes what has arrived.
func (h *handshake) read(b []byte) {
	h.mu.Lock()
	if len(h.in)+len(b) <= maxHandshake {
		h.in = append(h.in, b...)
	}
	h.mu.Unlock()
}

// lifetime is how long the session lives that the handshake began; 0: it does not end.
func (h *handshake) lifetime() (life time.Duration) {
	h.answers(func(r apiVersion, answer []byte) {
		if r.key == saslAuthenticate {
			if ms := lifetimeIn(answer, r.version); ms > 0 {
				life = time.Duration(min(ms, maxLifetime.Milliseconds())) * time.Millisecond
			} else {
				life = 0
			}
		}
	})
	return life
}

// lifetimeIn is the lifetime, in milliseconds, that an answer to SaslAuthenticate tells; 0: none.
func lifetimeIn(answer []byte, version int16) int64 {
	resp := kmsg.SASLAuthenticateResponse{Version: version}
	if version < 0 || version > resp.MaxVersion() || len(answer) < 4 {
		return 0
	}
	body := answer[4:]
	if resp.IsFlexible() {
		var err error
		if body, err = responseBody(answer, int32(binary.BigEndian.Uint32(answer))); err != nil {
			return 0
		}
	}
	if resp.ReadFrom(body) != nil {
		return 0
	}
	return resp.SessionLifetimeMillis
}

// maxLifetime is longer than any connection is kept anyway.
const maxLifetime = 365 * 24 * time.Hour

// renewAt is when a session that began at now is to be renewed: in good time, and not all at once where many began together.
func renewAt(now time.Time, life time.Duration, spread float64) time.Time {
	if life <= 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(float64(life) * (0.80 + 0.10*spread)))
}
