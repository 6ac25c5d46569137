package netstack

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), which package syscall does not name.
const tcpUserTimeout = 0x12

// setBuffers sets a socket's buffers. It comes before listen and connect, since they fix the window's scale.
func setBuffers(fd uintptr, bytes int) error {
	if bytes <= 0 {
		return nil
	}
	if err := syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, bytes); err != nil {
		return err
	}
	return syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, bytes)
}

// setUserTimeout has the kernel give up a connection whose data stays unacknowledged for d.
func setUserTimeout(fd uintptr, d time.Duration) error {
	return syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
}

// writeOnce writes to a socket that doesn't block and returns how many bytes it took.
func writeOnce(fd uintptr, b []byte) int {
	n, err := syscall.Write(int(fd), b)
	if err != nil {
		return 0
	}
	return n
}

// setBacklog changes how many connections wait to be accepted; 0 leaves the system's figure.
func setBacklog(l net.Listener, n int) error {
	t, ok := l.(*net.TCPListener)
	if n <= 0 || !ok {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), n) }); err != nil {
		return err
	}
	return failed
}
