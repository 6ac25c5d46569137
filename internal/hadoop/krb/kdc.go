package krb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxReply bounds a KDC's answer; tickets with Active Directory's group lists reach some 64 KiB.
const maxReply = 1 << 20

const (
	kdcTimeout = 10 * time.Second // for one request in all
	kdcStagger = time.Second      // silence after which the next KDC is asked as well
)

// dialer connects to a KDC.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// wire sends requests to the KDCs of realms. It is for concurrent use.
type wire struct {
	// Immutable.
	conf    *Conf
	dial    dialer
	srv     func(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
	timeout time.Duration
	stagger time.Duration

	mu   sync.Mutex         // guards good
	good map[string]attempt // by realm: what answered last
}

// attempt is one way to ask.
type attempt struct{ network, addr string }

func (a attempt) String() string { return a.network + " " + a.addr }

// reply is what an attempt came to.
type reply struct {
	at   attempt
	body []byte
	err  error
}

var errTooBig = errors.New("the answer is too long for UDP")

// UnreachableError is when no KDC of a realm answers.
type UnreachableError struct {
	Realm string
	Tried []string // each with what came of it
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no KDC of %s answers (%s); check the kdc lines of krb5.conf and that port 88 is open to them", e.Realm, strings.Join(e.Tried, "; "))
}

// send asks the KDCs of a realm, the one that answered last first, then in their order. A KDC that is silent for a moment is not
// waited for: the next is asked beside it, and the first good answer counts.
func (w *wire) send(ctx context.Context, realm string, msg []byte) ([]byte, string, error) {
	ways, err := w.ways(ctx, realm, len(msg))
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	results := make(chan reply, len(ways))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	next, running := 0, 0
	start := func() {
		a := ways[next]
		next++
		running++
		wg.Go(func() {
			body, err := w.ask(ctx, a, msg)
			results <- reply{a, body, err}
		})
	}
	start()
	t := time.NewTimer(w.stagger)
	defer t.Stop()
	var tried []string
	for {
		select {
		case r := <-results:
			running--
			if r.err == nil {
				w.remember(realm, r.at)
				return r.body, r.at.addr, nil
			}
			tried = append(tried, fmt.Sprintf("%v: %v", r.at, r.err))
			if next < len(ways) {
				start()
			} else if running == 0 {
				return nil, "", &UnreachableError{Realm: realm, Tried: tried}
			}
		case <-t.C:
			if next < len(ways) {
				start()
				t.Reset(w.stagger)
			}
		case <-ctx.Done():
			for _, a := range ways[:next] {
				tried = append(tried, a.String()+": no answer in time")
			}
			return nil, "", &UnreachableError{Realm: realm, Tried: tried}
		}
	}
}

// ways lists how a realm may be asked, in order.
func (w *wire) ways(ctx context.Context, realm string, size int) ([]attempt, error) {
	kdcs := w.conf.KDCs[realm]
	if len(kdcs) == 0 {
		if !w.conf.DNSLookupKDC {
			return nil, fmt.Errorf("krb5.conf names no KDC of %s: add kdc = … to its entry in [realms]", realm)
		}
		var err error
		if kdcs, err = w.lookup(ctx, realm); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	good, known := w.good[realm]
	w.mu.Unlock()
	var out []attempt
	if known && (good.network == "tcp" || size <= w.conf.UDPLimit) {
		out = append(out, good)
	}
	add := func(a attempt) {
		if !known || a != good {
			out = append(out, a)
		}
	}
	for _, k := range kdcs {
		udp := k.Proto != "tcp" && w.conf.UDPLimit > 1 && size <= w.conf.UDPLimit
		if udp {
			add(attempt{"udp", k.Addr})
		}
		if k.Proto != "udp" {
			add(attempt{"tcp", k.Addr})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the KDCs of %s take UDP only, and a request is longer than udp_preference_limit", realm)
	}
	return out, nil
}

// lookup finds a realm's KDCs by DNS.
func (w *wire) lookup(ctx context.Context, realm string) ([]KDC, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	var out []KDC
	var last error
	for _, proto := range []string{"tcp", "udp"} {
		_, srvs, err := w.srv(ctx, "kerberos", proto, realm)
		if err != nil {
			last = err
			continue
		}
		for _, s := range srvs {
			out = append(out, KDC{Addr: net.JoinHostPort(strings.TrimSuffix(s.Target, "."), strconv.Itoa(int(s.Port))), Proto: proto})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("cannot find the KDCs of %s: krb5.conf names none, and DNS neither: %w", realm, last)
	}
	return out, nil
}

func (w *wire) remember(realm string, a attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.good[realm] = a
}

// ask makes one attempt.
func (w *wire) ask(ctx context.Context, a attempt, msg []byte) ([]byte, error) {
	c, err := w.dial(ctx, a.network, a.addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	defer c.Close()
	var body []byte
	if a.network == "udp" {
		body, err = askUDP(c, msg)
	} else {
		body, err = askTCP(c, msg)
	}
	if err != nil {
		return nil, err
	}
	switch code := errorCode(body); code {
	case codeTooBig:
		if a.network == "udp" {
			return nil, errTooBig
		}
	case codeUnavailable:
		return nil, errors.New("the KDC says that it is not available")
	}
	return body, nil
}

func askUDP(c net.Conn, msg []byte) ([]byte, error) {
	if _, err := c.Write(msg); err != nil {
		return nil, err
	}
	b := make([]byte, 64<<10)
	n, err := c.Read(b)
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	return b[:n], err
}

func askTCP(c net.Conn, msg []byte) ([]byte, error) {
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(msg))), msg...)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxReply {
		return nil, fmt.Errorf("an answer of %d bytes: this may be no KDC", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	return b, err
}
