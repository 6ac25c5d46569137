package netstack

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/heddle-stream/heddle/internal/cluster"
)

func sockopt(t *testing.T, nc syscall.Conn, level, opt int) int {
	t.Helper()
	raw, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var v int
	if cerr := raw.Control(func(fd uintptr) { v, err = syscall.GetsockoptInt(int(fd), level, opt) }); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	return v
}

// TestSocketOptions looks at both ends' sockets of a connection.
func TestSocketOptions(t *testing.T) {
	edit := func(c *Config) {
		c.SocketBuffer, c.Backlog = 128<<10, 7
		c.KeepaliveInterval, c.KeepaliveTimeout = 2*time.Second, 9*time.Second
	}
	a, b := start(t, edit), start(t, edit)
	mustPartition(t, a, "p", 1)
	open(t, b, "p", a.Addr(), 0)
	eventually(t, "connected", func() bool { return a.Stats().Channels == 1 })
	for _, s := range []*Stack{a, b} {
		s.mu.Lock()
		conns := s.connsLocked()
		s.mu.Unlock()
		nc := conns[0].nc.(*net.TCPConn)
		for name, c := range map[string][3]int{
			"TCP_USER_TIMEOUT": {syscall.IPPROTO_TCP, tcpUserTimeout, 9000},
			"SO_KEEPALIVE":     {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			"TCP_KEEPIDLE":     {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 2},
			"TCP_KEEPINTVL":    {syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 2},
			"TCP_KEEPCNT":      {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 4},
			"TCP_NODELAY":      {syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
			"SO_SNDBUF":        {syscall.SOL_SOCKET, syscall.SO_SNDBUF, 256 << 10}, // the kernel doubles it
			"SO_RCVBUF":        {syscall.SOL_SOCKET, syscall.SO_RCVBUF, 256 << 10},
		} {
			if got := sockopt(t, nc, c[0], c[1]); got != c[2] {
				t.Errorf("%s (dialed=%v): got %d, want %d", name, conns[0].dialed, got, c[2])
			}
		}
	}
}

// TestBacklog reads back how many connections may wait, which tcp_get_info tells of a listener as tcpi_sacked.
func TestBacklog(t *testing.T) {
	info := func(s *Stack) (ti syscall.TCPInfo) {
		raw, err := s.listener.(*net.TCPListener).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		size, errno := uint32(unsafe.Sizeof(ti)), syscall.Errno(0)
		err = raw.Control(func(fd uintptr) {
			_, _, errno = syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO, uintptr(unsafe.Pointer(&ti)), uintptr(unsafe.Pointer(&size)), 0)
		})
		if err != nil || errno != 0 {
			t.Fatal(err, errno)
		}
		return ti
	}
	const listen = 10 // TCP_LISTEN
	system := info(start(t, nil))
	if system.State != listen || system.Sacked == 0 {
		t.Fatalf("the system's backlog: %+v", system)
	}
	for _, want := range []uint32{1, 7, 100} {
		if got := info(start(t, func(c *Config) { c.Backlog = int(want) })); got.State != listen || got.Sacked != min(want, system.Sacked) {
			t.Errorf("a backlog of %d: the kernel has %d, in state %d", want, got.Sacked, got.State)
		}
	}
}

// TestIPv6AndRanges connects over ::1, on the second port of a range whose first is taken.
func TestIPv6AndRanges(t *testing.T) {
	taken, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	_, err = New(Config{Auth: Auth{Key: testKey}, Listen: fmt.Sprintf("[::1]:%d-%d", port, port)})
	if e, ok := errors.AsType[*LocalError](err); !ok || e.Kind != cluster.Unavailable || !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("range of one taken port: got %v", err)
	}
	a := start(t, func(c *Config) { c.Listen = fmt.Sprintf("[::1]:%d,0", port) })
	b := start(t, func(c *Config) { c.Listen = "[::1]:0" })
	if host, _, _ := net.SplitHostPort(a.Addr()); host != "::1" {
		t.Fatalf("listens on %s", a.Addr())
	}
	p := mustPartition(t, a, "p", 1)
	done := make(chan error, 1)
	go func() { done <- produce(t.Context(), p, 1, 20) }()
	g, w := open(t, b, "p", a.Addr(), 0)
	if err := consume(g, w, []int{0}, 20); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
