package krb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/flags"
)

// Config says who logs in and by what. The zero value is the user of the ticket cache that the environment names.
type Config struct {
	// Env is the environment; nil: the process's own.
	Env func(string) (string, bool)
	// Conf is krb5.conf's content; nil: read as LoadConf does.
	Conf *Conf
	// Keytab is a file with keys; "": a ticket cache is used. With KeytabData it is a name only, and the keys are those.
	Keytab     string
	KeytabData []byte
	// Principal is who we are. With a keytab, "" is the only principal in it; with a cache, "" is whoever it belongs to.
	Principal string
	// Cache names a ticket cache as KRB5CCNAME does; "": as the environment and krb5.conf say.
	Cache string

	Now     func() time.Time // nil: time.Now
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	Timeout time.Duration // of one request to a realm's KDCs; 0: 10 s
	Logger  *slog.Logger  // nil: none
}

// Login is a principal that is, or can be, logged in. It is for concurrent use. It keeps itself valid: with a keytab it logs in anew in time, with
// a cache it takes what kinit wrote, and renews tickets that can be renewed.
type Login struct {
	// Immutable.
	cfg    Config
	conf   *Conf
	client Principal
	x      *exchanger
	log    *slog.Logger
	file   string // of the cache; "" with a keytab

	mu      sync.Mutex         // guards what follows
	keys    []KeytabEntry      // of the client, with a keytab
	seen    fs.FileInfo        // the file's state when it was read last
	cache   *Cache             // its content
	tgt     *Ticket            // nil: none yet
	tickets map[string]*Ticket // by service
	flights map[string]*flight
}

// flight is a ticket being fetched, which all who want it wait for.
type flight struct {
	done chan struct{}
	t    *Ticket // after done
	err  error   // after done
}

// Open reads the keytab or ticket cache. It asks no KDC.
func Open(cfg Config) (*Login, error) {
	if cfg.Env == nil {
		cfg.Env = os.LookupEnv
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = kdcTimeout
	}
	if cfg.Dial == nil {
		d := net.Dialer{Timeout: 5 * time.Second}
		cfg.Dial = d.DialContext
	}
	conf := cfg.Conf
	if conf == nil {
		var err error
		if conf, err = LoadConf(cfg.Env); err != nil {
			return nil, err
		}
	}
	w := &wire{conf: conf, dial: cfg.Dial, srv: net.DefaultResolver.LookupSRV, timeout: cfg.Timeout, stagger: kdcStagger, good: map[string]attempt{}}
	l := &Login{cfg: cfg, conf: conf, log: cfg.Logger, x: &exchanger{conf: conf, wire: w, now: cfg.Now}, tickets: map[string]*Ticket{}, flights: map[string]*flight{}}
	if cfg.Keytab != "" {
		return l, l.openKeytab()
	}
	return l, l.openCache()
}

// Conf is the krb5.conf in use. It must not be changed.
func (l *Login) Conf() *Conf { return l.conf }

// Principal is who we are.
func (l *Login) Principal() Principal { return l.client }

// Source names what the login lives by, for people.
func (l *Login) Source() string {
	if l.file == "" {
		return "keytab " + l.cfg.Keytab
	}
	return "ticket cache " + l.file
}

// CanRelogin reports whether the login lasts for as long as the key in its keytab is good.
func (l *Login) CanRelogin() bool { return l.file == "" }

func (l *Login) openKeytab() error {
	name := strings.TrimPrefix(l.cfg.Keytab, "FILE:")
	b := l.cfg.KeytabData
	if b == nil {
		var err error
		if b, err = os.ReadFile(name); err != nil {
			return fmt.Errorf("cannot read the keytab: %w", err)
		}
	}
	es, err := ParseKeytab(b)
	if err != nil {
		return fmt.Errorf("cannot read the keytab %s: %w", name, err)
	}
	all := principals(es)
	switch {
	case l.cfg.Principal != "":
		if l.client, err = ParsePrincipal(l.cfg.Principal); err != nil {
			return err
		}
		if l.client.Realm == "" {
			l.client.Realm = l.conf.DefaultRealm
		}
	case len(all) == 1:
		l.client = all[0]
	default:
		return fmt.Errorf("cannot choose a principal: the keytab %s has keys of %s; name one", name, describe(all))
	}
	l.keys = keysOf(es, l.client)
	if len(l.keys) == 0 {
		return fmt.Errorf("cannot log in as %s: the keytab %s has no usable key of it, but of %s", l.client, name, describe(all))
	}
	return nil
}

func (l *Login) openCache() error {
	file, err := CacheFile(l.cfg.Cache, l.cfg.Env, l.conf)
	if err != nil {
		return err
	}
	l.file = file
	if _, err := l.refreshCache(); err != nil {
		return err
	}
	l.client = l.cache.Client
	if l.cfg.Principal != "" {
		p, err := ParsePrincipal(l.cfg.Principal)
		if err != nil {
			return err
		}
		if p.Realm == "" {
			p.Realm = l.conf.DefaultRealm
		}
		if !p.Equal(l.client) {
			return fmt.Errorf("cannot log in as %s: the ticket cache %s belongs to %s; run kinit %s", p, file, l.client, p)
		}
	}
	return nil
}

// refreshCache reads the cache file if it changed. The caller holds mu, or nobody else has the login yet.
func (l *Login) refreshCache() (changed bool, err error) {
	st, err := os.Stat(l.file)
	if errors.Is(err, fs.ErrNotExist) && l.cache == nil {
		return false, fmt.Errorf("there is no ticket cache %s; run kinit", l.file)
	}
	if err != nil {
		if l.cache != nil {
			return false, nil // kdestroy, or kinit at work: what was read is still good
		}
		return false, fmt.Errorf("cannot read the ticket cache: %w", err)
	}
	if l.seen != nil && os.SameFile(st, l.seen) && st.ModTime().Equal(l.seen.ModTime()) && st.Size() == l.seen.Size() {
		return false, nil
	}
	b, err := os.ReadFile(l.file)
	if err != nil {
		return false, fmt.Errorf("cannot read the ticket cache: %w", err)
	}
	c, err := ParseCache(b)
	if err != nil {
		if l.cache != nil {
			return false, nil // kinit is writing it
		}
		return false, fmt.Errorf("cannot read the ticket cache %s: %w", l.file, err)
	}
	if l.cache != nil && !c.Client.Equal(l.cache.Client) {
		l.log.Warn("the ticket cache belongs to another principal now, its tickets are not used", "cache", l.file, "was", l.cache.Client, "is", c.Client)
		l.seen = st
		return false, nil
	}
	l.seen, l.cache = st, c
	return true, nil
}

// stale is when a ticket had better be replaced: after four fifths of its life.
func stale(t *Ticket, now time.Time) bool {
	life := t.End.Sub(t.Start)
	return now.After(t.End.Add(-life / 5))
}

func alive(t *Ticket, now time.Time) bool { return t != nil && now.Before(t.End) }

// Ready makes sure that there is a ticket-granting ticket, and returns how long it is good and how long it could be renewed.
func (l *Login) Ready(ctx context.Context) (end, renewTill time.Time, err error) {
	t, err := l.granting(ctx)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	return t.End, t.RenewTill, nil
}

// granting returns our realm's ticket-granting ticket.
func (l *Login) granting(ctx context.Context) (*Ticket, error) {
	return l.fly(ctx, "", func() *Ticket {
		now := l.cfg.Now()
		if l.file != "" && (l.tgt == nil || stale(l.tgt, now) || l.changed()) {
			l.fromCache(now)
		}
		if alive(l.tgt, now) && !stale(l.tgt, now) {
			return l.tgt
		}
		return nil
	}, func(old *Ticket) (*Ticket, error) { return l.newTGT(ctx, old) })
}

// changed reports whether the cache file is another than what was read. The caller holds mu.
func (l *Login) changed() bool {
	st, err := os.Stat(l.file)
	return err == nil && (l.seen == nil || !os.SameFile(st, l.seen) || !st.ModTime().Equal(l.seen.ModTime()))
}

// fromCache takes the best ticket-granting ticket of the cache. The caller holds mu.
func (l *Login) fromCache(now time.Time) {
	changed, err := l.refreshCache()
	if err != nil {
		l.log.Warn("the ticket cache cannot be read", "err", err)
		return
	}
	t := l.cache.find(tgtOf(l.client.Realm, l.client.Realm), now)
	if t != nil && (l.tgt == nil || t.End.After(l.tgt.End)) {
		l.tgt = t
		if changed {
			l.tickets = map[string]*Ticket{}
		}
	}
}

// newTGT logs in, or renews what a cache gave. If that fails, a ticket that is good for a while yet goes on being used.
func (l *Login) newTGT(ctx context.Context, old *Ticket) (*Ticket, error) {
	now := l.cfg.Now()
	var t *Ticket
	var err error
	switch {
	case l.file == "":
		l.mu.Lock()
		keys := l.keys
		l.mu.Unlock()
		t, err = l.x.login(ctx, l.client, keys)
		if err != nil {
			err = fmt.Errorf("cannot log in to Kerberos as %s by the keytab %s: %w", l.client, l.cfg.Keytab, err)
		}
	case old == nil || !alive(old, now):
		e := &ExpiredError{Cache: l.file, Client: l.client.String()}
		if old != nil {
			e.End = old.End
		}
		return nil, e
	case old.RenewTill.After(now.Add(time.Minute)):
		t, err = l.x.ticket(ctx, old, tgtOf(l.client.Realm, l.client.Realm), l.conf.Enctypes, flags.Renew, flags.Renewable)
	default:
		return old, nil // it cannot be had for longer
	}
	if err == nil {
		l.log.Debug("logged in to Kerberos", "principal", l.client, "until", t.End)
		return t, nil
	}
	if alive(old, now) {
		l.log.Warn("the Kerberos ticket could not be renewed and is used up to its end", "principal", l.client, "end", old.End, "err", err)
		return old, nil
	}
	return nil, err
}

// fly returns a ticket that is there, by have, or fetches it. One caller fetches, the others wait for it. have is called with mu held.
func (l *Login) fly(ctx context.Context, key string, have func() *Ticket, fetch func(old *Ticket) (*Ticket, error)) (*Ticket, error) {
	for {
		l.mu.Lock()
		if t := have(); t != nil {
			l.mu.Unlock()
			return t, nil
		}
		old := l.tickets[key]
		if key == "" {
			old = l.tgt
		}
		f, waits := l.flights[key]
		if !waits {
			f = &flight{done: make(chan struct{})}
			l.flights[key] = f
		}
		l.mu.Unlock()
		if !waits {
			f.t, f.err = fetch(old)
			l.land(key, f)
			return f.t, f.err
		}
		select {
		case <-f.done:
			// The one who fetched may have given up for reasons of its own.
			if f.err == nil || !(errors.Is(f.err, context.Canceled) || errors.Is(f.err, context.DeadlineExceeded)) {
				return f.t, f.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *Login) land(key string, f *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.flights, key)
	if f.err == nil {
		if key == "" {
			l.tgt = f.t
		} else {
			l.tickets[key] = f.t
		}
	}
	close(f.done)
}

// Ticket returns a ticket for a service, such as nn/host@REALM. Without a realm, the service's is found by [domain_realm], else the KDCs
// are asked the way.
func (l *Login) Ticket(ctx context.Context, service Principal) (*Ticket, error) {
	if service.Realm == "" && len(service.Parts) > 1 {
		service.Realm = l.conf.RealmOf(service.Parts[1])
	}
	key := service.String()
	t, err := l.fly(ctx, key, func() *Ticket {
		now := l.cfg.Now()
		t := l.tickets[key]
		if t == nil && l.cache != nil && l.usableCached(service, now) != nil {
			t = l.usableCached(service, now)
		}
		if alive(t, now) && !stale(t, now) {
			return t
		}
		return nil
	}, func(old *Ticket) (*Ticket, error) {
		if alive(old, l.cfg.Now()) {
			if tgt, err := l.granting(ctx); err != nil || !tgt.End.After(old.End) {
				return old, nil // a new one would not last longer
			}
		}
		t, err := l.fetch(ctx, service)
		if err != nil && alive(old, l.cfg.Now()) {
			return old, nil
		}
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot get a Kerberos ticket for %s: %w", service, err)
	}
	return t, nil
}

// usableCached is the cache's own ticket for a service, if its key can seal messages. The caller holds mu.
func (l *Login) usableCached(service Principal, now time.Time) *Ticket {
	t := l.cache.find(service, now)
	if t == nil || !slices.Contains(sealing, t.Enctype()) {
		return nil
	}
	return t
}

// fetch asks for a ticket, over as many realms as it takes.
func (l *Login) fetch(ctx context.Context, service Principal) (*Ticket, error) {
	tgt, err := l.granting(ctx)
	if err != nil {
		return nil, err
	}
	etypes := both(l.conf.Enctypes, sealing)
	if len(etypes) == 0 {
		return nil, fmt.Errorf("krb5.conf allows %s alone, and Hadoop's messages are protected by AES keys here: add aes256-cts to permitted_enctypes", enctypeList(l.conf.Enctypes))
	}
	if service.Realm != "" && service.Realm != l.client.Realm {
		if tgt, err = l.cross(ctx, tgt, service.Realm); err != nil {
			return nil, err
		}
	}
	var options []int
	if service.Realm == "" || l.conf.Canonicalize {
		options = append(options, flags.Canonicalize)
	}
	for range 10 {
		t, err := l.x.ticket(ctx, tgt, service, etypes, options...)
		if err != nil {
			return nil, err
		}
		if slices.Equal(t.Server.Parts, service.Parts) {
			if !slices.Contains(sealing, t.Enctype()) {
				return nil, fmt.Errorf("the KDC chose a session key of %s, which cannot protect messages here", EnctypeName(t.Enctype()))
			}
			return t, nil
		}
		tgt = t // a referral to another realm
	}
	return nil, errors.New("the KDCs refer to each other without end")
}

// cross gets another realm's ticket-granting ticket, by the way that krb5.conf or else the KDCs know.
func (l *Login) cross(ctx context.Context, tgt *Ticket, realm string) (*Ticket, error) {
	way := append(slices.Clone(l.conf.CAPaths[l.client.Realm][realm]), realm)
	for hops := 0; len(way) > 0; hops++ {
		if hops > 10 {
			return nil, fmt.Errorf("the way to the realm %s has no end", realm)
		}
		next := way[0]
		at := tgt.Server.Parts[1]
		t, err := l.x.ticket(ctx, tgt, tgtOf(next, at), l.conf.Enctypes)
		if err != nil {
			return nil, fmt.Errorf("the realm %s does not lead to %s: %w", at, realm, err)
		}
		if len(t.Server.Parts) != 2 || t.Server.Parts[1] == at {
			return nil, fmt.Errorf("the realm %s leads nowhere but to itself", at)
		}
		tgt = t
		if i := slices.Index(way, t.Server.Parts[1]); i >= 0 {
			way = way[i+1:]
		}
	}
	return tgt, nil
}
