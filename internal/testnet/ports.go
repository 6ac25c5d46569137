package testnet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// ports are those that this process has handed out, each with the locked file that keeps it from other processes of the user.
var ports struct {
	mu    sync.Mutex
	taken map[int]*os.File
}

// FreePort returns a TCP port of 127.0.0.1 on which nobody listens, and which it gives to nobody else while this process lives: for servers that must be
// told their port before they start. It is not one of those that the kernel gives to outgoing connections and to who asks for any: such a
// port could be gone before its server starts.
func FreePort() (int, error) {
	low, high := portRange()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for range 1000 {
		if port := low + rand.IntN(high-low); takePort(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("cannot find a free port from %d to %d", low, high)
}

// FreePorts returns n ports as FreePort does.
func FreePorts(n int) ([]int, error) {
	out := make([]int, n)
	for i := range out {
		var err error
		if out[i], err = FreePort(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// portRange is where to look: below the kernel's own range.
func portRange() (low, high int) {
	const least, many = 10_000, 12_000
	first := 32768
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		fmt.Sscan(string(b), &first)
	}
	if first < least+1000 {
		return least, least + many // inside it, for want of a better place
	}
	return max(least, first-many), first
}

// takePort reports whether port is free, and keeps it. The caller holds ports.mu.
func takePort(port int) bool {
	if ports.taken[port] != nil {
		return false
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	l.Close()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("heddle-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return false
	}
	if ports.taken == nil {
		ports.taken = map[int]*os.File{}
	}
	ports.taken[port] = f
	return true
}
