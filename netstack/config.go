package netstack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/heddle-stream/heddle/netstack/wire"
)

// Config says how a Stack works. The zero value of each field is its default. It must not change after New.
type Config struct {
	Listen    string // host:port; port may be a range or list such as "9000,9002-9010", tried in order; "": 127.0.0.1:0
	Advertise string // host or host:port that peers are told; "": the listen address, or the host name if that is every address
	Identity  string // of this agent, for errors and logs; "": the advertised address

	SegmentBytes   int // size of a frame of data with its header, a multiple of 8; 0: 64 KiB
	MemorySegments int // segments in all; 0: 1024

	ExclusivePerChannel int // segments that are always a channel's own; 0: 1, negative: none (a consumer must then go on taking from every channel)
	FloatingPerGate     int // more segments that a gate lends to channels with a backlog; 0: 32, negative: none (but one if there are no exclusive ones)
	MaxPerChannel       int // most segments a channel has with floating ones; 0: 32
	MaxPerSubpartition  int // most segments a producer may fill ahead for one consumer; 0: 32
	Overdraft           int // segments that a producer may have beyond its limits to end a record (Partition.Overdraft); 0: 5, negative: none

	MaxConnections          int           // to one peer; a channel takes the one of its ConnIndex mod this; 0: 1
	ConnectTimeout          time.Duration // of one attempt; 0: 10 s
	HandshakeTimeout        time.Duration // 0: 10 s
	ConnectRetries          int           // attempts after the first; 0: 3, negative: none
	ConnectBackoff          time.Duration // before the first retry, doubled each time, with jitter; 0: 100 ms, negative: none
	PartitionRequestTimeout time.Duration // a request waits so long at the producer for the partition to appear; 0: 10 s
	KeepaliveInterval       time.Duration // something is sent at least this often; 0: 10 s
	KeepaliveTimeout        time.Duration // a connection that brings nothing for so long has failed; 0: 30 s
	IdleTimeout             time.Duration // a connection without channels is closed after; 0: 60 s

	SocketBuffer   int           // bytes of a socket's buffer each way; 0: the system's, which grow as needed
	Backlog        int           // connections that may wait to be accepted; 0: the system's
	TCPUserTimeout time.Duration // the kernel gives up a connection whose data stays unacknowledged for so long; 0: KeepaliveTimeout, negative: the system's

	// Compression is how payloads are compressed between processes: "" or "none", "lz4" or "zstd". What doesn't shrink is sent plain,
	// and so is everything to a peer whose own Compression is another.
	Compression string
	// Checksum adds a CRC-32C to every frame, between peers that both have it set.
	Checksum bool

	// DebloatTarget: data in flight to a consumer is sized to what it consumes in so long, by shorter segments; 0: segments are filled.
	DebloatTarget time.Duration

	// Auth is what every connection proves in its hello. Without a key, TLS must be set.
	Auth Auth
	// TLS encrypts connections, if not nil.
	TLS *TLS

	Logger *slog.Logger // nil: discards

	// Dial and Listener replace the network, for tests and other transports; nil: TCP.
	Dial     func(ctx context.Context, addr string) (net.Conn, error)
	Listener net.Listener
	// Clock replaces this host's wall clock, which is read once, for tests; nil: time.Now.
	Clock func() time.Time
}

// Auth is the secret that all agents of an application share.
type Auth struct {
	// Key is 32 random bytes. Both ends prove that they have it, over nonces of both.
	Key []byte
}

// KeySize is the length of Auth.Key.
const KeySize = 32

// TLS is the configuration for each side of a connection. For mutual TLS, Server has ClientCAs and
// RequireAndVerifyClientCert, and Client has a certificate; without Auth.Key both are required.
type TLS struct {
	Server *tls.Config
	Client *tls.Config // an empty ServerName becomes the host of the address dialed
}

func def[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
	*v = max(*v, 0)
}

// withDefaults returns c with defaults filled in, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	def(&c.SegmentBytes, 64<<10)
	def(&c.MemorySegments, 1024)
	def(&c.ExclusivePerChannel, 1)
	def(&c.FloatingPerGate, 32)
	def(&c.MaxPerChannel, 32)
	def(&c.MaxPerSubpartition, 32)
	def(&c.Overdraft, 5)
	def(&c.MaxConnections, 1)
	def(&c.ConnectRetries, 3)
	def(&c.ConnectTimeout, 10*time.Second)
	def(&c.HandshakeTimeout, 10*time.Second)
	def(&c.ConnectBackoff, 100*time.Millisecond)
	def(&c.PartitionRequestTimeout, 10*time.Second)
	def(&c.KeepaliveInterval, 10*time.Second)
	def(&c.KeepaliveTimeout, 30*time.Second)
	def(&c.IdleTimeout, 60*time.Second)
	def(&c.TCPUserTimeout, c.KeepaliveTimeout)
	c.MaxConnections = max(c.MaxConnections, 1)
	c.MaxPerSubpartition = max(c.MaxPerSubpartition, 1)
	if c.ExclusivePerChannel == 0 {
		c.FloatingPerGate = max(c.FloatingPerGate, 1)
		c.MaxPerChannel = max(c.MaxPerChannel, 1)
	}
	if c.Compression == "none" {
		c.Compression = ""
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return c, errors.Join(c.checkOptions(), c.checkProof())
}

// Check tells what New would refuse for what the options say: sizes, times, ports. It looks at neither the key nor TLS, and not at this host.
func (c Config) Check() error {
	c.Auth.Key, c.TLS = make([]byte, KeySize), nil
	_, err := c.withDefaults()
	return err
}

func (c *Config) checkOptions() error {
	_, list, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = parsePorts(list)
	}
	if c.Advertise != "" {
		if err := checkAdvertise(c.Advertise); err != nil {
			return err
		}
	}
	switch {
	case err != nil && c.Listener == nil:
		return fmt.Errorf("exchange.bind and exchange.port are %s: %w", c.Listen, err)
	case c.SegmentBytes < 1024 || c.SegmentBytes > 16<<20 || c.SegmentBytes%8 != 0:
		return fmt.Errorf("exchange.segment-bytes is %d: must be a multiple of 8 from 1 KiB to 16 MiB", c.SegmentBytes)
	case takes[c.Compression] == 0 && c.Compression != "":
		return fmt.Errorf("exchange.compression is %q: must be none, lz4 or zstd", c.Compression)
	case c.KeepaliveTimeout <= c.KeepaliveInterval:
		return fmt.Errorf("exchange.keepalive-timeout (%v) must be longer than exchange.keepalive-interval (%v)", c.KeepaliveTimeout, c.KeepaliveInterval)
	}
	return nil
}

func (c *Config) checkProof() error {
	switch {
	case len(c.Auth.Key) != 0 && len(c.Auth.Key) != KeySize:
		return fmt.Errorf("exchange key has %d bytes, must have %d", len(c.Auth.Key), KeySize)
	case c.TLS != nil && (c.TLS.Server == nil || c.TLS.Client == nil):
		return errors.New("TLS needs a configuration for each side")
	case len(c.Auth.Key) == 0 && c.TLS == nil:
		return errors.New("neither a key nor TLS is given: connections would prove nothing")
	case len(c.Auth.Key) == 0 && c.TLS.Server.ClientAuth != tls.RequireAndVerifyClientCert:
		return errors.New("TLS without a key must require and verify the client's certificate")
	}
	return nil
}

// room is the payload of a segment: what is left beside the header, so that a full frame is SegmentBytes long
// (a round number for pages, TLS records and the kernel).
func (c *Config) room() int { return c.SegmentBytes - wire.HeaderSize }
