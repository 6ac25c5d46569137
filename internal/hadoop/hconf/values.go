package hconf

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"
)

// Bool returns a key's truth value; def if it is not set.
func (c *Conf) Bool(key string, def bool) (bool, error) {
	v, err := c.String(key)
	if err != nil || v == "" {
		return def, err
	}
	switch strings.ToLower(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return def, c.bad(key, v, errors.New("it is neither true nor false"))
}

// Int returns a key's whole number; def if it is not set. Hadoop's 0x numbers are read too.
func (c *Conf) Int(key string, def int64) (int64, error) {
	v, err := c.String(key)
	if err != nil || v == "" {
		return def, err
	}
	base, digits := 10, v
	if h, ok := strings.CutPrefix(strings.ToLower(v), "0x"); ok {
		base, digits = 16, h
	}
	n, err := strconv.ParseInt(digits, base, 64)
	if err != nil {
		return def, c.bad(key, v, errors.New("it is not a whole number"))
	}
	return n, nil
}

// Float returns a key's number; def if it is not set.
func (c *Conf) Float(key string, def float64) (float64, error) {
	v, err := c.String(key)
	if err != nil || v == "" {
		return def, err
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return def, c.bad(key, v, errors.New("it is not a number"))
	}
	return n, nil
}

// Duration returns a key's span of time; def if it is not set. A number without unit counts in units of unit.
func (c *Conf) Duration(key string, unit, def time.Duration) (time.Duration, error) {
	v, err := c.String(key)
	if err != nil || v == "" {
		return def, err
	}
	s := strings.ToLower(v)
	for _, u := range []struct {
		suffix string
		unit   time.Duration
	}{
		{"ns", time.Nanosecond}, {"us", time.Microsecond}, {"ms", time.Millisecond},
		{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
	} {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, unit = strings.TrimSpace(rest), u.unit
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return def, c.bad(key, v, errors.New("it is not a span of time, such as 500 or 10s"))
	}
	d := time.Duration(n) * unit
	if n != 0 && d/time.Duration(n) != unit {
		return def, c.bad(key, v, errors.New("it is too long a span of time"))
	}
	return d, nil
}

// List returns the trimmed elements of a comma-separated value, without empty ones.
func (c *Conf) List(key string) ([]string, error) {
	v, err := c.String(key)
	if err != nil {
		return nil, err
	}
	var out []string
	for s := range strings.SplitSeq(v, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out, nil
}

// Address returns a key's "host:port"; port is that of a value without one. "" if the key is not set.
func (c *Conf) Address(key string, port int) (string, error) {
	v, err := c.String(key)
	if err != nil || v == "" {
		return "", err
	}
	a, err := address(v, port)
	if err != nil {
		return "", c.bad(key, v, err)
	}
	return a, nil
}

func address(v string, port int) (string, error) {
	if i := strings.Index(v, "://"); i >= 0 {
		v = strings.TrimRight(v[i+3:], "/")
	}
	if v == "" || strings.ContainsAny(v, "/ \t${}") {
		return "", errors.New("it is not host:port")
	}
	host, p, err := net.SplitHostPort(v)
	if err != nil {
		if strings.Count(v, ":") == 1 || strings.HasSuffix(v, ":") {
			return "", errors.New("it is not host:port")
		}
		return net.JoinHostPort(strings.Trim(v, "[]"), strconv.Itoa(port)), nil
	}
	if n, err := strconv.Atoi(p); err != nil || n < 0 || n > 65535 || host == "" {
		return "", errors.New("it is not host:port")
	}
	return net.JoinHostPort(host, p), nil
}
