package hrpc

import (
	"context"
	"errors"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// Choosy is an Authenticator that has proofs for some servers only.
type Choosy interface {
	Authenticator
	// Serves reports whether there is one for a server of an address.
	Serves(server string) bool
}

// ByTokenFor authenticates by the token that find returns for a server's address, at each connection anew: tokens are replaced while a process runs. A server
// without one is left to other proofs.
func ByTokenFor(find func(server string) (token.Token, bool)) Authenticator { return byTokenFor{find} }

type byTokenFor struct {
	find func(server string) (token.Token, bool)
}

func (byTokenFor) Method() string { return byToken{}.Method() }
func (byTokenFor) User() string   { return byToken{}.User() }

// Serves implements Choosy.
func (a byTokenFor) Serves(server string) bool {
	_, ok := a.find(server)
	return ok
}

func (a byTokenFor) Begin(ctx context.Context, o Offer) ([]byte, Exchange, error) {
	t, ok := a.find(o.Server)
	if !ok {
		return nil, nil, errors.New("the token for it is gone")
	}
	return byToken{t}.Begin(ctx, o)
}
