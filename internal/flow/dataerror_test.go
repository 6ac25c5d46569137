package flow

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestLogged: what an author's function or a format says of a record, and the record, is told as an error and not in logs.
func TestLogged(t *testing.T) {
	n := &Node{ID: 3, Name: "parse", Where: "job/main.go:7"}
	secret := errors.New("strconv.Atoi: parsing \"topsecret\"")
	data := recordError(n, secret, "topsecret")
	caught := func(f func()) (err error) {
		defer func() { err = panicError(n, recover(), "topsecret") }()
		f()
		return nil
	}
	for name, c := range map[string]struct {
		err  error
		want string // the beginning of what logs tell
	}{
		"a function":                    {data, "operator parse (job/main.go:7): failed at a record"},
		"a function that panics":        {caught(func() { panic("topsecret") }), "operator parse (job/main.go:7): panic at flow/dataerror_test.go:"},
		"a function with a wrong index": {caught(func() { _ = []int{}[len(name(n))] }), "operator parse (job/main.go:7): panic: runtime error: index out of range [5]"},
		"wrapped":                       {fmt.Errorf("cannot run: %w", data), "cannot run: operator parse"},
		"joined":                        {errors.Join(errors.New("first"), fmt.Errorf("second: %w", data)), "first\nsecond: operator parse"},
		"a call without a record":       {callError(n, "close", secret), "operator parse (job/main.go:7): close: panic"},
	} {
		got := Logged(c.err)
		if !strings.HasPrefix(got, c.want) || strings.Contains(got, "topsecret") {
			t.Errorf("%s: logs tell %q, want %q…", name, got, c.want)
		}
		if !strings.Contains(c.err.Error(), "topsecret") {
			t.Errorf("%s: the cause %q does not show the record", name, c.err)
		}
	}
	if plain := errors.New("plain"); Logged(plain) != "plain" {
		t.Errorf("an error without data is logged as %q", Logged(plain))
	}
}

func name(n *Node) string { return n.Name }
