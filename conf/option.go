package conf

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Type is the form of an option's value.
type Type uint8

// The types of options.
const (
	String   Type = iota // any text
	Bool                 // true or false
	Int                  // a whole number
	Duration             // a Go duration, or whole days: 20ms, 1h30m, 7d
	Bytes                // an amount of memory: 32KiB, 64MiB, 1000000
	List                 // texts separated by commas; in YAML also a sequence
	Enum                 // one of Option.Values
	Float                // a number: 1, 0.5
)

var typeNames = [...]string{"string", "bool", "int", "duration", "bytes", "list", "enum", "float"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// Option declares one option. Every value has one canonical text, which is what files, flags and
// processes exchange; the typed getters of [Config] parse it.
type Option struct {
	Name    string   // lower case, dotted: "exchange.segment-bytes"
	Type    Type     // form of the value
	Default string   // canonical text; "" means unset
	Unit    string   // what the number counts, for people; "" where the type says it
	Doc     string   // one or more sentences, the first a summary
	Values  []string // of an Enum
	Min     string   // least value of an Int, Duration or Bytes, "" for none
	Max     string   // greatest value, "" for none
	Secret  bool     // masked when shown, refused on the command line, never in conf.yaml
	File    bool     // names a file of this host, which goes along to processes on other hosts
	Also    string   // another program's environment variable that sets the option where nothing else does, "" for none
	Any     bool     // a family: the last word of Name, in capitals, stands for the name of any environment variable
	Common  bool     // shown among the flags of `heddle run --help`
}

// Env is the name of the environment variable that sets o.
func (o Option) Env() string { return envName(o.Name) }

func envName(name string) string {
	return "HEDDLE_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
}

// Form says what a value of o looks like, for error messages and the reference page.
func (o Option) Form() string {
	form := ""
	switch o.Type {
	case String:
		form = "text"
	case Bool:
		form = "true or false"
	case Int:
		form = "a whole number"
	case Duration:
		form = "a duration such as 500ms, 30s, 1h30m or 7d"
	case Bytes:
		form = "an amount of bytes such as 32KiB, 64MiB or 1000000"
	case List:
		form = "texts separated by commas"
	case Float:
		form = "a number such as 1 or 0.5"
	case Enum:
		form = "one of " + strings.Join(o.Values, ", ")
	}
	switch {
	case o.Min != "" && o.Max != "":
		form += ", from " + o.Min + " to " + o.Max
	case o.Min != "":
		form += ", at least " + o.Min
	case o.Max != "":
		form += ", at most " + o.Max
	}
	return form
}

// Canonical checks text against the option's type and bounds and returns its canonical form.
// The empty text unsets an option and is always right.
func (o Option) Canonical(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", nil
	}
	canonical, value, err := o.parse(text)
	if err != nil {
		return "", fmt.Errorf("option %s: %q is not %s", o.Name, o.shown(text), o.Form())
	}
	for _, bound := range []struct {
		text string
		bad  func(v, b int64) bool
	}{
		{o.Min, func(v, b int64) bool { return v < b }},
		{o.Max, func(v, b int64) bool { return v > b }},
	} {
		if bound.text == "" {
			continue
		}
		_, b, err := o.parse(bound.text)
		if err != nil {
			return "", fmt.Errorf("option %s: bound %q: %w", o.Name, bound.text, err)
		}
		if bound.bad(value, b) {
			return "", fmt.Errorf("option %s: %s is out of range: want %s", o.Name, canonical, o.Form())
		}
	}
	return canonical, nil
}

// shown is text as errors may print it.
func (o Option) shown(text string) string {
	if o.Secret {
		return Mask
	}
	return text
}

// parse returns the canonical text of a non-empty value and, for types that are ordered, its number.
func (o Option) parse(text string) (string, int64, error) {
	switch o.Type {
	case Bool:
		v, err := parseBool(text)
		return strconv.FormatBool(v), 0, err
	case Int:
		v, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		return strconv.FormatInt(v, 10), v, err
	case Duration:
		v, err := ParseDuration(text)
		return FormatDuration(v), int64(v), err
	case Bytes:
		v, err := ParseBytes(text)
		return FormatBytes(v), v, err
	case Float:
		v, err := strconv.ParseFloat(text, 64)
		if err == nil && (math.IsNaN(v) || math.Abs(v) > 1e12) {
			err = strconv.ErrRange
		}
		return strconv.FormatFloat(v, 'g', -1, 64), int64(v * 1e6), err
	case List:
		return strings.Join(splitList(text), ","), 0, nil
	case Enum:
		if !slices.Contains(o.Values, text) {
			return "", 0, fmt.Errorf("not one of %s", strings.Join(o.Values, ", "))
		}
	}
	return text, 0, nil
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", text)
}

func splitList(text string) []string {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// ParseDuration parses a Go duration, or whole or broken days: 7d, 1.5d. "0" needs no unit.
func ParseDuration(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseFloat(days, 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > 100_000 {
		return 0, fmt.Errorf("%q is not a number of days", text)
	}
	return time.Duration(n * 24 * float64(time.Hour)), nil
}

// FormatDuration is d without its trailing zero units: 5m, not 5m0s.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// byteUnits are the suffixes of amounts of bytes, longest first where one ends another.
var byteUnits = []struct {
	suffix string
	size   int64
}{
	{"tib", 1 << 40}, {"gib", 1 << 30}, {"mib", 1 << 20}, {"kib", 1 << 10},
	{"tb", 1e12}, {"gb", 1e9}, {"mb", 1e6}, {"kb", 1e3}, {"b", 1},
	{"t", 1 << 40}, {"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10},
}

// ParseBytes parses an amount of bytes. KiB, MiB, GiB, TiB and the single letters k, m, g, t count in
// powers of 1024; KB, MB, GB, TB in powers of 1000. Case does not matter. No suffix means bytes.
func ParseBytes(text string) (int64, error) {
	number, size := strings.ToLower(strings.ReplaceAll(text, "_", "")), int64(1)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, size = strings.TrimSpace(rest), u.size
			break
		}
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n < 0 || n > math.MaxInt64/size {
			return 0, fmt.Errorf("%q is out of range", text)
		}
		return n * size, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f >= 0 && f*float64(size) < math.MaxInt64) {
		return 0, fmt.Errorf("%q is not an amount of bytes", text)
	}
	return int64(f * float64(size)), nil
}

// FormatBytes is n in the largest binary unit that divides it.
func FormatBytes(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
