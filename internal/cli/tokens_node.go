package cli

import (
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// forNode are the tokens that an agent's container begins with. Its NodeManager keeps those of the application's first container there until it has collected
// the logs, when the application is over, and hears of no others. So they are those of the submission as long as these last, which the
// ResourceManager renews, and ends when logs are collected: the agent gets fresh ones when it comes to us. After that they are the present ones, which we then
// leave to their end.
func (k *tokenKeeper) forNode(now time.Time) token.Credentials {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.have
	out.Tokens = slices.Clone(out.Tokens)
	for i, t := range out.Tokens {
		if t.Token.Kind != token.KindHDFS && t.Token.Kind != token.KindKMS {
			continue
		}
		if j := slices.IndexFunc(k.came, func(c token.Named) bool { return c.Alias == t.Alias && c.Token.Kind == t.Token.Kind }); j >= 0 && lasts(k.came[j], now) {
			out.Tokens[i] = k.came[j]
			continue
		}
		if k.lent == nil {
			k.lent = map[string]bool{}
		}
		k.lent[string(t.Token.Identifier)] = true
	}
	return out
}

// lasts reports whether a token can be renewed for a while still.
func lasts(t token.Named, now time.Time) bool {
	d, err := t.Token.Delegation()
	return err == nil && d.Max.Sub(now) > min(time.Hour, d.Max.Sub(d.Issued)/4)
}

// isLent reports whether a NodeManager may have a token that we got.
func (k *tokenKeeper) isLent(t token.Token) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lent[string(t.Identifier)]
}
