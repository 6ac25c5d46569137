package cli

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestNamed reads access control lists as Hadoop does (org.apache.hadoop.security.authorize.AccessControlList).
func TestNamed(t *testing.T) {
	groups := map[string][]string{"bob": {"staff", "users"}, "eve": {"alice"}}
	for _, x := range []struct {
		acl, user string
		want      bool
	}{
		{"", "bob", false}, {" ", "bob", false}, {"bob", "bob", true}, {"alice,bob", "bob", true}, {"alice", "bob", false}, {"*", "bob", true}, {"*", "", true},
		{" staff", "bob", true}, {"alice staff,other", "bob", true}, {"alice other", "bob", false}, {"staff", "bob", false}, {"alice", "eve", false}, {" *", "bob", true},
		{"alice  users", "bob", true}, {"bob", "bo", false}, {" staff", "", false}, {",", "", false}, {"bob", "Bob", false},
	} {
		if got := named(x.acl, x.user, func(u string) []string { return groups[u] }); got != x.want {
			t.Errorf("%q names %q: %v", x.acl, x.user, got)
		}
	}
	named("alice,bob", "bob", func(string) []string { t.Error("groups are asked for that don't matter"); return nil })
}

// TestGroupBook asks once in a while, and soon again where there was no answer.
func TestGroupBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, fail := 0, false
		b := &groupBook{log: slog.New(slog.DiscardHandler), ask: func(context.Context, string) ([]string, error) {
			if asked++; fail {
				return nil, errors.New("no NameNode")
			}
			return []string{"staff"}, nil
		}}
		for _, x := range []struct {
			after time.Duration
			fail  bool
			asked int
			known bool
		}{{0, false, 1, true}, {time.Minute, true, 1, true}, {groupsGood, true, 2, false}, {time.Second, false, 2, false}, {groupsBad, false, 3, true}} {
			time.Sleep(x.after)
			fail = x.fail
			if got := slices.Contains(b.of("bob"), "staff"); got != x.known || asked != x.asked {
				t.Errorf("after %v: known %v, asked %d times; want %v, %d", x.after, got, asked, x.known, x.asked)
			}
		}
		for i := range 3 * groupsMost {
			b.of(string(rune(i)))
		}
		if len(b.users) > groupsMost {
			t.Errorf("%d users are remembered", len(b.users))
		}
	})
}
