package cli

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/heddle-stream/heddle/conf"
)

// listenAll listens for agents and for people.
func listenAll(c *conf.Config) (control, pages net.Listener, err error) {
	control, err = listen(c, "appmaster")
	if err != nil {
		return nil, nil, err
	}
	pages, err = listen(c, "web")
	if err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	return control, pages, nil
}

// tryAddresses reports why an ApplicationMaster on this host could not listen, before anything is started.
func tryAddresses(c *conf.Config) error {
	control, pages, err := listenAll(c)
	if err != nil {
		return err
	}
	return errors.Join(control.Close(), pages.Close())
}

// bind is the address to listen on that an option names: with target yarn every one of the node, unless it is set.
func bind(c *conf.Config, option string) string {
	if c.Text("target") == "yarn" && !given(c, option) {
		return ""
	}
	host := c.Text(option)
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		return strings.TrimSuffix(inner, "]") // as in a URL
	}
	return host
}

// checkAddresses refuses addresses and ports to listen on that are wrong on any host.
func checkAddresses(c *conf.Config) error {
	for _, part := range []string{"appmaster", "web", "exchange"} {
		if err := checkHost(part, bind(c, part+".bind")); err != nil {
			return usage(err, "`heddle config` shows where each value came from")
		}
		if part == "exchange" {
			continue // its ports are checked with its other options
		}
		if _, err := portsOf(part+".port", c.Text(part+".port")); err != nil {
			return usage(err)
		}
	}
	return nil
}

func checkHost(part, host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	switch {
	case strings.Contains(host, ":"):
		return fmt.Errorf("option %s.bind: %q is not an IP address; if it has a port, that goes into %s.port", part, host, part)
	case host != printable(host) || strings.ContainsAny(host, " []/@%?#,"):
		return fmt.Errorf("option %s.bind: %q is neither an IP address nor the name of a host", part, host)
	}
	return nil
}

// span is a range of ports.
type span struct{ first, last uint64 }

// portsOf reads an option of ports: one, or a list of ports and ranges.
func portsOf(option, text string) (spans []span, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.ParseUint(from, 10, 16)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 16)
		}
		if err != nil || last < first {
			return nil, fmt.Errorf("option %s: %q is not a port, or a list or range of ports such as 9000,9010-9020", option, text)
		}
		spans = append(spans, span{first, last})
	}
	return spans, nil
}

// listen listens where the options part.bind and part.port say, on the first port that is free.
func listen(c *conf.Config, part string) (net.Listener, error) {
	host, ports := bind(c, part+".bind"), c.Text(part+".port")
	spans, err := portsOf(part+".port", ports)
	if err != nil {
		return nil, usage(err)
	}
	for _, s := range spans {
		for port := s.first; port <= s.last; port++ {
			var l net.Listener
			if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.FormatUint(port, 10))); err == nil {
				return l, nil
			}
			if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
				return nil, precondition(fmt.Errorf("cannot listen on %s.bind %s: %w; give %s.bind an address of this host, such as 127.0.0.1, or 0.0.0.0 for all", part, host, err, part))
			}
		}
	}
	return nil, precondition(fmt.Errorf("cannot listen on a port of %s.port %s: %w; give %s.port another port, a range of them, or 0 for any that is free", part, ports, err, part))
}
