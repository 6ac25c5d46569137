package cli

import (
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// TestForNode: a NodeManager gets tokens that live until it has collected logs: those of the submission while they last, and later such as we do not cancel.
func TestForNode(t *testing.T) {
	now := time.Now()
	came, fresh := hdfsToken(now.Add(2*time.Hour)), hdfsToken(now.Add(24*time.Hour))
	fresh.Token.Identifier = append(fresh.Token.Identifier, 1)
	rm := rmToken(t, "alice@R", 5)
	mail := &slot{}
	k := newKeeper(t, mail)
	k.came = []token.Named{came, rm}
	k.have = token.Credentials{Tokens: []token.Named{rm, fresh}}
	first := func(at time.Time) token.Named {
		got := k.forNode(at)
		if len(got.Tokens) != 2 || string(got.Tokens[0].Token.Identifier) != string(rm.Token.Identifier) {
			t.Errorf("it gets %v", got.Tokens)
		}
		return got.Tokens[1]
	}
	for _, x := range []struct { // in order: after the last a NodeManager has the fresh one
		name string
		came token.Named
		want token.Named
	}{
		{"lasts", came, came},
		{"ends soon", hdfsToken(now.Add(time.Minute)), fresh},
		{"not told of", token.Named{Alias: came.Alias, Token: token.Token{Kind: token.KindHDFS}}, fresh},
	} {
		k.came[0], k.lent = x.came, nil
		got := first(now)
		if string(got.Token.Identifier) != string(x.want.Token.Identifier) {
			t.Errorf("%s: it gets %v", x.name, got)
		}
		if lent := x.came.Alias != "" && k.isLent(fresh.Token); lent != (string(x.want.Token.Identifier) == string(fresh.Token.Identifier)) {
			t.Errorf("%s: we keep %v from being cancelled: %v", x.name, fresh, lent)
		}
	}
	if k.own([]token.Named{fresh}); len(k.leftBehind()) != 0 {
		t.Error("another attempt is to cancel a token that a NodeManager has")
	}
	if got := k.present().Tokens[1]; string(got.Token.Identifier) != string(fresh.Token.Identifier) {
		t.Errorf("agents get %v", got)
	}
}
