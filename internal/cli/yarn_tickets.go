package cli

import (
	"crypto/hmac"
	"crypto/sha1" // YARN knows no other
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/appmaster/web"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/krb"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// tickets are the tokens by which YARN vouches for those who call an ApplicationMaster (its ClientToAMTokens): a ResourceManager gives one to
// who may see the application, and tells the ApplicationMaster the key at its registration.
type tickets struct {
	// Immutable.
	attempt yarnid.Attempt
	short   func(client string) (string, error) // a user's name by that of a client, which is a principal

	mu  sync.Mutex // guards key
	key []byte
}

// learn takes the key.
func (k *tickets) learn(key []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key = key
}

// of is the ticket that an identifier stands for.
func (k *tickets) of(identifier []byte) (web.Ticket, error) {
	k.mu.Lock()
	key := k.key
	k.mu.Unlock()
	var id pb.ClientToAMTokenIdentifierProto
	if err := proto.Unmarshal(identifier, &id); err != nil || id.AppAttemptId == nil || id.GetClientName() == "" {
		return web.Ticket{}, errors.New("the ticket is not one of YARN's for callers of an ApplicationMaster")
	}
	switch at := yarnid.AttemptOf(id.GetAppAttemptId()); {
	case at != k.attempt:
		return web.Ticket{}, fmt.Errorf("the ticket is for %s, this is %s", at, k.attempt)
	case len(key) == 0:
		return web.Ticket{}, errors.New("YARN has not told by which key tickets are made: this cluster has no security, or the ApplicationMaster has just begun")
	}
	user, err := k.short(id.GetClientName())
	if err != nil {
		return web.Ticket{}, err
	}
	mac := hmac.New(sha1.New, key)
	mac.Write(identifier)
	return web.Ticket{User: user, Password: mac.Sum(nil)}, nil
}

// shortName is the user that a client's name stands for: a principal where the client came by Kerberos, the user itself where it came by a token.
func (h *hadoop) shortName(client string) (string, error) {
	if !strings.ContainsAny(client, "@/") {
		return client, nil
	}
	p, err := krb.ParsePrincipal(client)
	if err != nil {
		return "", err
	}
	realm := h.id.Realm()
	if p.Realm == "" {
		p.Realm = realm
	}
	return h.conf.ShortName(p.Parts, p.Realm, realm)
}
