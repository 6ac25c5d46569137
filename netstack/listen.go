package netstack

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
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
				return nil, fmt.Errorf("%w; exchange.bind must be an address of this host", lerr)
			}
			err = lerr
		}
	}
	return nil, fmt.Errorf("no port is free: %w; give exchange.port a range with a port for each agent of a host", err)
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

// checkAdvertise refuses what no peer can dial: want must be a host, or a host and a port.
func checkAdvertise(want string) error {
	host, port, err := net.SplitHostPort(want)
	if err != nil { // a host alone
		host, port = strings.TrimSuffix(strings.TrimPrefix(want, "["), "]"), "1"
	}
	_, noIP := netip.ParseAddr(host)
	n, badPort := strconv.ParseUint(port, 10, 16)
	if host == "" || noIP != nil && strings.ContainsAny(host, ":[]/ ") || badPort != nil || n == 0 {
		return fmt.Errorf("exchange.advertise is %q: must be a host, or a host and port such as host:9000 or [::1]:9000", want)
	}
	return nil
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
