package web

import (
	"bufio"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strings"
)

// ownerOf finds the user whose process holds the other end of a TCP connection of this host, by the kernel's tables
// (proc(5), /proc/net/tcp and tcp6). remote is the other end's address, local ours.
func ownerOf(remote, local netip.AddrPort) (uid int, ok bool) {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if uid, ok := ownerIn(table, tableAddr(remote, table), tableAddr(local, table)); ok {
			return uid, true
		}
	}
	return 0, false
}

func ownerIn(table, remote, local string) (uid int, ok bool) {
	f, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid …
		col := strings.Fields(lines.Text())
		if len(col) > 7 && col[1] == remote && col[2] == local {
			_, err := fmt.Sscan(col[7], &uid)
			return uid, err == nil
		}
	}
	return 0, false
}

// tableAddr is an address as the kernel's table writes it: words of 32 bits in the host's (little-endian) order, and the port, in hex.
func tableAddr(a netip.AddrPort, table string) string {
	ip := a.Addr().Unmap()
	b := ip.AsSlice()
	if strings.HasSuffix(table, "6") {
		b16 := ip.As16()
		b = b16[:]
	}
	var s strings.Builder
	for i := 0; i < len(b); i += 4 {
		fmt.Fprintf(&s, "%02X%02X%02X%02X", b[i+3], b[i+2], b[i+1], b[i])
	}
	fmt.Fprintf(&s, ":%04X", a.Port())
	return s.String()
}

// ownBrowser reports whether a request comes from this host, from a process of our own user, and was not made by a page
// of somebody else's: then it needs no token, since whoever can send it can read the token's file too.
func (s *Server) ownBrowser(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(interface{ String() string })
	if !ok || !sameSite(r) {
		return false
	}
	here, err1 := netip.ParseAddrPort(local.String())
	there, err2 := netip.ParseAddrPort(r.RemoteAddr)
	if err1 != nil || err2 != nil || !there.Addr().Unmap().IsLoopback() || !here.Addr().Unmap().IsLoopback() {
		return false
	}
	uid, ok := s.cfg.Owner(there, here)
	return ok && uid == os.Getuid()
}

// sameSite refuses what a browser sends for a page of another site: by its own word (Sec-Fetch-Site), by Origin, and
// by a Host that is a name somebody else may have pointed at this address (DNS rebinding).
func sameSite(r *http.Request) bool {
	host := r.Host
	if at, err := netip.ParseAddrPort(host); err != nil || !at.Addr().Unmap().IsLoopback() {
		if name, _, _ := strings.Cut(host, ":"); name != "localhost" {
			return false
		}
	}
	if o := r.Header.Get("Origin"); o != "" && o != "http://"+host {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return navigates(r)
}
