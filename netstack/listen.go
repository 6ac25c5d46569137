package netstack

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// listenSpec listens on the first port of spec that is free. spec is host:ports, as in Config.Listen.
func (o *sockets) listenSpec(spec string) (net.Listener, error) {
	host, list, err := net.SplitHostPort(spec)
	if err != nil {
		return nil, err
	}
	ports, err := parsePorts(list)
	if err != nil {
		return nil, err
	}
	for _, r := range ports {
		for port := r.from; port <= r.to; port++ {
			l, lerr := o.listen(net.JoinHostPort(host, strconv.Itoa(port)))
			if lerr == nil {
				return l, nil
			}
			if !errors.Is(lerr, syscall.EADDRINUSE) && !errors.Is(lerr, syscall.EACCES) {
				return nil, lerr
			}
			err = lerr
		}
	}
	return nil, fmt.Errorf("no port is free: %w", err)
}

type portRange struct{ from, to int }

// parsePorts reads a list of ports and ranges, such as "9000,9002-9010".
func parsePorts(list string) ([]portRange, error) {
	var ports []portRange
	for _, part := range strings.Split(list, ",") {
		lo, hi, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			hi = lo
		}
		from, err1 := strconv.ParseUint(lo, 10, 16)
		to, err2 := strconv.ParseUint(hi, 10, 16)
		if err1 != nil || err2 != nil || from > to || (isRange && from == 0) {
			return nil, fmt.Errorf("%q is not a port, a range such as 9000-9010 or a list of these", part)
		}
		ports = append(ports, portRange{int(from), int(to)})
	}
	return ports, nil
}

// advertise is the address that peers are told: want, with what it lacks taken from the listener's.
// Where that listens on every address, a host must be named: hostname, unless want has one.
func advertise(want, listening, hostname string) string {
	host, port, err := net.SplitHostPort(listening)
	if want == "" {
		if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() && hostname != "" {
			return net.JoinHostPort(hostname, port)
		}
		return listening
	}
	if _, _, bad := net.SplitHostPort(want); bad == nil || err != nil {
		return want
	}
	return net.JoinHostPort(strings.Trim(want, "[]"), port)
}
