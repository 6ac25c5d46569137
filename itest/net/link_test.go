package nettest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The addresses of the two hosts.
const (
	addrA = "10.77.0.1"
	addrB = "10.77.0.2"
)

// world is two network namespaces, each with a TUN device whose packets the test carries to the other. The kernel's own
// means (netem) are not everywhere; this way the TCP at both ends is real and the link does exactly what the test says.
type world struct {
	t     *testing.T
	hosts [2]host
	links [2]*link // from host 0 to 1 and back
	wg    sync.WaitGroup
}

type host struct {
	ns, dev string
	tun     *os.File
}

// faults is what a direction of the link does to packets.
type faults struct {
	loss    float64       // share that is dropped
	delay   time.Duration // of each
	reorder float64       // share that is held back for 3 ms, so that others overtake
}

// link carries packets in one direction.
type link struct {
	from, to *os.File
	set      atomic.Pointer[faults]
	reset    atomic.Bool // the next packet with data becomes a RST
	forged   atomic.Int32
	carried  atomic.Int64
	dropped  atomic.Int64
	plain    atomic.Int64 // packets in which an agent's name is to be read
}

var worlds atomic.Int32

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("network namespaces need root: run make itest-net as root")
	}
	w := &world{t: t}
	n := worlds.Add(1)
	for i, addr := range []string{addrA, addrB} {
		h := &w.hosts[i]
		h.ns = fmt.Sprintf("heddle-%d-%d-%d", os.Getpid(), n, i)
		h.dev = fmt.Sprintf("hd%d-%d-%d", os.Getpid()%100000, n, i)
		run(t, "ip", "netns", "add", h.ns)
		t.Cleanup(func() { run(t, "ip", "netns", "del", h.ns) })
		var err error
		if h.tun, err = openTUN(h.dev); err != nil {
			t.Fatal(err)
		}
		peer := []string{addrB, addrA}[i]
		run(t, "ip", "link", "set", h.dev, "netns", h.ns)
		run(t, "ip", "-n", h.ns, "addr", "add", addr, "peer", peer, "dev", h.dev)
		run(t, "ip", "-n", h.ns, "link", "set", "lo", "up")
		run(t, "ip", "-n", h.ns, "link", "set", h.dev, "mtu", "1500", "up")
	}
	for i := range w.links {
		l := &link{from: w.hosts[i].tun, to: w.hosts[1-i].tun}
		l.set.Store(&faults{})
		w.links[i] = l
		w.wg.Go(l.carry)
	}
	t.Cleanup(func() {
		for i := range w.hosts {
			w.hosts[i].tun.Close()
		}
		w.wg.Wait()
	})
	return w
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("cannot run %s %v: %v\n%s", name, args, err, out)
	}
}

// openTUN makes a TUN device that gives whole IP packets.
func openTUN(name string) (*os.File, error) {
	fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open /dev/net/tun: %w", err)
	}
	var req struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(req.name[:15], name)
	req.flags = syscall.IFF_TUN | syscall.IFF_NO_PI
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TUNSETIFF, uintptr(unsafe.Pointer(&req))); errno != 0 {
		syscall.Close(fd)
		return nil, fmt.Errorf("cannot make TUN device %s: %w", name, errno)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// delayed is a packet and when it is due.
type delayed struct {
	at  time.Time
	pkt []byte
}

// carry moves packets until the device is closed.
func (l *link) carry() {
	var late sync.WaitGroup
	defer late.Wait()
	queue := make(chan delayed, 1<<14)
	late.Go(func() {
		for d := range queue {
			time.Sleep(time.Until(d.at))
			l.send(d.pkt)
		}
	})
	defer close(queue)
	buf := make([]byte, 2048)
	for {
		n, err := l.from.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil { // the device is down
			time.Sleep(time.Millisecond)
			continue
		}
		f := l.set.Load()
		if bytes.Contains(buf[:n], []byte("consumer")) || bytes.Contains(buf[:n], []byte("producer")) {
			l.plain.Add(1)
		}
		pkt := append([]byte(nil), buf[:n]...)
		switch {
		case f.loss > 0 && rand.Float64() < f.loss:
			l.dropped.Add(1)
		case l.reset.Load() && forgeReset(&pkt):
			l.reset.Store(false)
			l.forged.Add(1)
			l.send(pkt)
		case f.reorder > 0 && rand.Float64() < f.reorder:
			late.Add(1)
			time.AfterFunc(3*time.Millisecond, func() { defer late.Done(); l.send(pkt) })
		case f.delay > 0:
			queue <- delayed{time.Now().Add(f.delay), pkt}
		default:
			l.send(pkt)
		}
	}
}

func (l *link) send(pkt []byte) {
	if _, err := l.to.Write(pkt); err == nil {
		l.carried.Add(1)
	}
}

// forgeReset makes a RST of a TCP packet that carries a good deal of data: in the midst of a frame, since frames are longer than packets.
func forgeReset(pkt *[]byte) bool {
	p := *pkt
	if len(p) < 1000 || p[0]>>4 != 4 || p[9] != syscall.IPPROTO_TCP {
		return false
	}
	ip := int(p[0]&15) * 4
	p = p[:ip+20]
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	p[10], p[11] = 0, 0
	binary.BigEndian.PutUint16(p[10:], checksum(0, p[:ip]))
	tcp := p[ip:]
	tcp[12], tcp[13] = 5<<4, 0x14 // RST, ACK
	tcp[16], tcp[17] = 0, 0
	sum := uint32(syscall.IPPROTO_TCP + len(tcp))
	for i := 12; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	binary.BigEndian.PutUint16(tcp[16:], checksum(sum, tcp))
	*pkt = p
	return true
}

// checksum is that of IP and TCP.
func checksum(sum uint32, b []byte) uint16 {
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// fault makes both directions do f from now on.
func (w *world) fault(f faults) {
	for _, l := range w.links {
		l.set.Store(&f)
	}
}

// cut takes the link of host 1 down, and mend up.
func (w *world) cut()  { run(w.t, "ip", "-n", w.hosts[1].ns, "link", "set", w.hosts[1].dev, "down") }
func (w *world) mend() { run(w.t, "ip", "-n", w.hosts[1].ns, "link", "set", w.hosts[1].dev, "up") }
