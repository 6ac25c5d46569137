package netstack

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"
)

// sockets are the options of TCP sockets.
type sockets struct {
	buffer      int           // bytes each way; 0: the system's, which grow as needed
	backlog     int           // 0: the system's
	userTimeout time.Duration // how long sent data may stay unacknowledged; 0: the system's
	keepalive   net.KeepAliveConfig
}

func (c *Config) sockets() sockets {
	interval := max(c.KeepaliveInterval, time.Second)
	return sockets{
		buffer: c.SocketBuffer, backlog: c.Backlog, userTimeout: c.TCPUserTimeout,
		keepalive: net.KeepAliveConfig{Enable: true, Idle: interval, Interval: interval, Count: max(1, int(c.KeepaliveTimeout/interval))},
	}
}

// control sets what must be set before a socket listens or connects.
func (o *sockets) control(_, _ string, raw syscall.RawConn) error {
	var failed error
	if err := raw.Control(func(fd uintptr) {
		if failed = setBuffers(fd, o.buffer); failed != nil {
			failed = fmt.Errorf("cannot set socket buffers of %d bytes: %w", o.buffer, failed)
		}
	}); err != nil {
		return err
	}
	return failed
}

// tune sets what a connected socket needs. Connections that are not TCP stay as they are.
func (o *sockets) tune(nc net.Conn) error {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	if err := t.SetKeepAliveConfig(o.keepalive); err != nil {
		return fmt.Errorf("cannot set TCP keepalive: %w", err)
	}
	if o.userTimeout <= 0 {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = setUserTimeout(fd, o.userTimeout) }); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("cannot set TCP_USER_TIMEOUT: %w", failed)
	}
	return nil
}

func (o *sockets) dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Control: o.control, KeepAlive: -1} // tune sets it
	return d.DialContext(ctx, "tcp", addr)
}

func (o *sockets) listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{Control: o.control, KeepAlive: -1}
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	if err := setBacklog(l, o.backlog); err != nil {
		l.Close()
		return nil, fmt.Errorf("cannot set a backlog of %d: %w", o.backlog, err)
	}
	return l, nil
}
