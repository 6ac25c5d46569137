//go:build !linux

package netstack

import (
	"net"
	"time"
)

// Where the system is not Linux, sockets stay as the system makes them; the exchange's own keepalive bounds detection all the same.

func writeOnce(uintptr, []byte) int               { return 0 }
func setBuffers(uintptr, int) error               { return nil }
func setUserTimeout(uintptr, time.Duration) error { return nil }
func setBacklog(net.Listener, int) error          { return nil }
