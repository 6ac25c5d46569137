package krb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Ticket is a right to talk to a service, with the key that proves it.
type Ticket struct {
	Client, Server        Principal
	Start, End, RenewTill time.Time
	key                   types.EncryptionKey
	ticket                messages.Ticket
}

// Enctype is that of the ticket's session key.
func (t *Ticket) Enctype() int32 { return t.key.KeyType }

// Cache is the content of a ticket cache file.
type Cache struct {
	Client  Principal
	Tickets []*Ticket
}

// ParseCache reads a ticket cache in the file format of libkrb5, versions 3 and 4.
func ParseCache(b []byte) (*Cache, error) {
	if len(b) < 2 || b[0] != 5 {
		return nil, errors.New("it is not a ticket cache")
	}
	if b[1] != 3 && b[1] != 4 {
		return nil, fmt.Errorf("it is a ticket cache of version %d, and 3 and 4 can be read", b[1])
	}
	r := &cursor{b: b[2:]}
	if b[1] == 4 {
		r.bytes(int(r.u16())) // header, whose clock offset is libkrb5's own business
	}
	c := &Cache{Client: cachePrincipal(r)}
	if r.err != nil {
		return nil, fmt.Errorf("the ticket cache is damaged: %w", r.err)
	}
	for len(r.b) > 0 {
		t, raw := cacheTicket(r, b[1])
		if r.err != nil {
			return nil, fmt.Errorf("the ticket cache is damaged: %w", r.err)
		}
		// Settings of libkrb5's are kept as tickets of a realm of that name. Others that can't be read are none of ours.
		if strings.HasPrefix(t.Server.Realm, "X-CACHECONF") || len(raw) == 0 || t.ticket.Unmarshal(raw) != nil || len(t.ticket.SName.NameString) == 0 {
			continue
		}
		c.Tickets = append(c.Tickets, t)
	}
	return c, nil
}

func cachePrincipal(r *cursor) Principal {
	r.u32() // kind of name
	n := r.u32()
	p := Principal{Realm: string(r.counted32())}
	if r.err == nil && n > 64 {
		r.err = errors.New("a principal has too many parts")
	}
	for i := uint32(0); i < n && r.err == nil; i++ {
		p.Parts = append(p.Parts, string(r.counted32()))
	}
	return p
}

func cacheTicket(r *cursor, version byte) (*Ticket, []byte) {
	t := &Ticket{Client: cachePrincipal(r), Server: cachePrincipal(r)}
	t.key.KeyType = int32(int16(r.u16()))
	if version == 3 {
		r.u16() // the type once more
	}
	t.key.KeyValue = append([]byte(nil), r.counted32()...)
	at := func() time.Time {
		if v := r.u32(); v != 0 {
			return time.Unix(int64(v), 0)
		}
		return time.Time{}
	}
	auth := at()
	t.Start, t.End, t.RenewTill = at(), at(), at()
	if t.Start.IsZero() {
		t.Start = auth
	}
	r.u8()        // is_skey
	r.u32()       // flags
	for range 2 { // addresses, then authorization data
		for n := r.u32(); n > 0 && r.err == nil; n-- {
			r.u16()
			r.counted32()
		}
	}
	raw := r.counted32()
	r.counted32() // second ticket
	return t, raw
}

// find returns the ticket for a service that is good for longest.
func (c *Cache) find(p Principal, now time.Time) *Ticket {
	var best *Ticket
	for _, t := range c.Tickets {
		if t.Client.Equal(c.Client) && t.Server.Equal(p) && t.End.After(now) && (best == nil || t.End.After(best.End)) {
			best = t
		}
	}
	return best
}

// CacheError is a ticket cache of a kind that only libkrb5 can read.
type CacheError struct{ Name string }

func (e *CacheError) Error() string {
	kind, _, _ := strings.Cut(e.Name, ":")
	return fmt.Sprintf("cannot read the ticket cache %s: caches of kind %s are kept outside of files; "+
		"run: export KRB5CCNAME=FILE:/tmp/krb5cc_heddle_%d && kinit   (or use a keytab)", e.Name, kind, os.Getuid())
}

// CacheFile returns the file of the ticket cache in use: what name says, or KRB5CCNAME, or krb5.conf, or libkrb5's default.
func CacheFile(name string, env func(string) (string, bool), conf *Conf) (string, error) {
	if name == "" {
		name, _ = env("KRB5CCNAME")
	}
	if name == "" && conf != nil {
		name = expandCacheName(conf.DefaultCache, env)
	}
	if name == "" {
		name = "FILE:/tmp/krb5cc_" + strconv.Itoa(os.Getuid())
	}
	kind, rest, ok := strings.Cut(name, ":")
	if !ok || strings.Contains(kind, "/") {
		return name, nil
	}
	switch kind {
	case "FILE":
		return rest, nil
	case "DIR":
		return dirCache(rest)
	}
	return "", &CacheError{Name: name}
}

// dirCache returns the file in use of a collection in a folder; ":file" names one itself.
func dirCache(dir string) (string, error) {
	if f, ok := strings.CutPrefix(dir, ":"); ok {
		return f, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, "primary"))
	if errors.Is(err, os.ErrNotExist) {
		return filepath.Join(dir, "tkt"), nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the ticket cache DIR:%s: %w", dir, err)
	}
	name := strings.TrimSpace(string(b))
	if !strings.HasPrefix(name, "tkt") || strings.ContainsRune(name, '/') {
		return "", fmt.Errorf("cannot read the ticket cache DIR:%s: its file primary names %q, which is no cache", dir, name)
	}
	return filepath.Join(dir, name), nil
}

func expandCacheName(name string, env func(string) (string, bool)) string {
	get := func(k, def string) string {
		if v, ok := env(k); ok && v != "" {
			return v
		}
		return def
	}
	uid := strconv.Itoa(os.Getuid())
	return strings.NewReplacer("%{uid}", uid, "%{euid}", strconv.Itoa(os.Geteuid()), "%{USERID}", uid, "%{null}", "",
		"%{username}", get("USER", uid), "%{TEMP}", get("TMPDIR", "/tmp")).Replace(name)
}
