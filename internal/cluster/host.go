package cluster

import (
	"net/netip"
	"strings"
)

// HostKey is a host's name as names are compared: in lower case, without a dot at its end.
func HostKey(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// ShortHost is the first part of a full name; "" of a name that has one part, and of an address.
func ShortHost(name string) string {
	short, _, full := strings.Cut(name, ".")
	if !full {
		return ""
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return ""
	}
	return short
}

// SameHost reports whether two names are one host's, as far as names tell: they are equal but for case, or one is the first part
// of the other. Systems that should call a host the same, as HDFS and YARN, often differ in that.
func SameHost(a, b string) bool {
	a, b = strings.TrimSuffix(a, "."), strings.TrimSuffix(b, ".")
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) == len(b) {
		return strings.EqualFold(a, b)
	}
	return a != "" && b[len(a)] == '.' && strings.EqualFold(a, b[:len(a)]) && ShortHost(b) == b[:len(a)]
}
