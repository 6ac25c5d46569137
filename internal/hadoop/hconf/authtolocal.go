package hconf

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ShortName returns the user that hadoop.security.auth_to_local makes of a Kerberos principal. parts are the principal's, without its realm;
// defaultRealm is krb5.conf's.
func (c *Conf) ShortName(parts []string, realm, defaultRealm string) (string, error) {
	const key = "hadoop.security.auth_to_local"
	v, err := c.String(key)
	if err != nil {
		return "", err
	}
	if v == "" {
		v = "DEFAULT"
	}
	rules, err := parseRules(v)
	if err != nil {
		return "", c.bad(key, v, err)
	}
	full := strings.Join(parts, "/") + "@" + realm
	for _, r := range rules {
		if s, ok := r.apply(parts, realm, defaultRealm); ok {
			if strings.ContainsAny(s, "/@") {
				return "", c.bad(key, v, fmt.Errorf("it makes %q of %s, which is no user's name", s, full))
			}
			return s, nil
		}
	}
	if mech, err := c.String(key + ".mechanism"); err == nil && strings.EqualFold(mech, "mit") {
		return full, nil
	}
	return "", c.bad(key, v, fmt.Errorf("no rule of it applies to %s", full))
}

// rule is one of auth_to_local: DEFAULT if it has no format, else RULE:[parts:format](match)s/from/to/gL.
type rule struct {
	parts  int
	format string
	match  *regexp.Regexp // of the whole; nil: anything
	from   *regexp.Regexp // nil: nothing is replaced
	to     string
	all    bool
	lower  bool
}

var ruleForm = regexp.MustCompile(`^RULE:\[(\d+):([^\]]*)\](?:\(((?:[^()]|\([^()]*\))*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?(/?L)?$`)

// parseRules reads rules between blanks.
func parseRules(v string) ([]rule, error) {
	var out []rule
	for _, w := range strings.Fields(v) {
		if w == "DEFAULT" {
			out = append(out, rule{})
			continue
		}
		m := ruleForm.FindStringSubmatch(w)
		if m == nil {
			return nil, fmt.Errorf("%q is neither DEFAULT nor RULE:[n:format](match)s/from/to/", w)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || n < 1 || m[2] == "" {
			return nil, fmt.Errorf("%q does not say how a name is put together", w)
		}
		r := rule{parts: n, format: m[2], to: javaReplacement(m[5]), all: m[6] != "", lower: m[7] != ""}
		if m[3] != "" {
			if r.match, err = regexp.Compile("^(?:" + m[3] + ")$"); err != nil {
				return nil, err
			}
		}
		if m[4] != "" {
			if r.from, err = regexp.Compile(m[4]); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, errors.New("it has no rule")
	}
	return out, nil
}

// javaReplacement writes $1 as ${1}, since Go takes what follows for part of the name.
func javaReplacement(s string) string {
	return regexp.MustCompile(`\$(\d)`).ReplaceAllString(s, "$${$1}")
}

func (r rule) apply(parts []string, realm, defaultRealm string) (string, bool) {
	if r.format == "" {
		return parts[0], realm == defaultRealm || realm == ""
	}
	if len(parts) != r.parts {
		return "", false
	}
	pairs := []string{"$0", realm}
	for i, p := range parts {
		pairs = append(pairs, "$"+strconv.Itoa(i+1), p)
	}
	s := strings.NewReplacer(pairs...).Replace(r.format)
	if r.match != nil && !r.match.MatchString(s) {
		return "", false
	}
	switch {
	case r.from != nil && r.all:
		s = r.from.ReplaceAllString(s, r.to)
	case r.from != nil:
		if at := r.from.FindStringSubmatchIndex(s); at != nil {
			s = s[:at[0]] + string(r.from.ExpandString(nil, r.to, s, at)) + s[at[1]:]
		}
	}
	if r.lower {
		s = strings.ToLower(s)
	}
	return s, true
}
