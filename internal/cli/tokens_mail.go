package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/hadoop/creds"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// Files of tokens in an application's folder in HDFS.
const (
	mailFile   = "tokens.push"    // fresh ones for the ApplicationMaster, which removes it
	recordFile = "tokens.fetched" // those that are to be cancelled, without their passwords
)

// mailLimit is how large such a file may be.
const mailLimit = 1 << 20

// tokenMail is where tokens are handed in. It is in HDFS, in a folder of the application's user that nobody else can open.
type tokenMail interface {
	// read returns a file and what is known of it; fs.ErrNotExist: there is none.
	read(name string) ([]byte, hdfs.Info, error)
	// write replaces a file by one that only its owner can read.
	write(ctx context.Context, name string, data []byte) error
	remove(name string) error
}

// storeMail is a tokenMail in the staging folder. Each call makes a connection of its own, by the proofs of the moment.
type storeMail struct {
	h   *hadoop
	app string
}

func (m storeMail) read(name string) (data []byte, info hdfs.Info, err error) {
	store, f, err := m.h.openStore()
	if err != nil {
		return nil, info, err
	}
	defer f.Close()
	name = path.Join(store.AppDir(m.app), name)
	if info, err = store.FS.Stat(name); err == nil {
		data, err = store.FS.ReadFile(name, mailLimit)
	}
	return data, info, err
}

func (m storeMail) write(ctx context.Context, name string, data []byte) error {
	store, f, err := m.h.openStore()
	if err != nil {
		return err
	}
	return errors.Join(store.Publish(ctx, m.app, name, data), f.Close())
}

func (m storeMail) remove(name string) error {
	store, f, err := m.h.openStore()
	if err != nil {
		return err
	}
	return errors.Join(store.FS.RemoveAll(path.Join(store.AppDir(m.app), name)), f.Close())
}

// letter is what goes along with tokens that are handed in.
type letter struct {
	ID    string       `json:"id"` // by which the sender finds the answer
	Force bool         `json:"force,omitempty"`
	Notes []creds.Note `json:"notes"`
}

// letterSecret is its name among the secrets of the credentials.
const letterSecret = "heddle.push"

// seal makes a file of tokens that are handed in.
func (l letter) seal(c token.Credentials) ([]byte, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	return token.Credentials{Tokens: c.Tokens, Secrets: []token.Secret{{Name: letterSecret, Value: data}}}.Append(nil), nil
}

// openLetter reads what was handed in, and refuses what others can have written or read, or what is not for us.
func (k *tokenKeeper) openLetter(data []byte, info hdfs.Info) (l letter, c token.Credentials, err error) {
	if c, err = token.Parse(data); err != nil {
		return l, c, err
	}
	if err := json.Unmarshal(c.Secret(letterSecret), &l); err != nil {
		return l, c, errors.New("it was not written by heddle tokens push")
	}
	c.Secrets = nil
	switch {
	case info.Owner != k.id.User():
		return l, c, fmt.Errorf("its file belongs to %s, and the application to %s", info.Owner, k.id.User())
	case info.Mode&0o077 != 0:
		return l, c, fmt.Errorf("others can open its file (mode %o)", info.Mode)
	case len(creds.Delegations(c)) != len(c.Tokens) || len(c.Tokens) == 0:
		return l, c, errors.New("it holds no delegation tokens, or others besides")
	}
	for _, t := range c.Tokens {
		if t.Token.Kind != token.KindKafka && !k.id.Owns(t.Token) {
			return l, c, fmt.Errorf("the %s was not made for %s", t.Token, k.id.User())
		}
	}
	for i := range l.Notes {
		l.Notes[i].Source = creds.Pushed
	}
	return l, c, nil
}

// receive takes over what was handed in, if something was.
func (k *tokenKeeper) receive(ctx context.Context) {
	data, info, err := k.mail.read(mailFile)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			k.log.Warn("cannot look for tokens that were handed in", "err", err)
		}
		return
	}
	result := appmaster.PushResult{Time: time.Now()}
	l, fresh, err := k.openLetter(data, info)
	result.ID = l.ID
	var choice creds.Choice
	if err != nil {
		result.Refused = err.Error()
		k.log.Warn("refused tokens that were handed in", "why", err)
	} else {
		choice = creds.Choose(k.present(), k.notes, fresh, l.Notes, l.Force)
		for _, t := range choice.Take.Tokens {
			result.Taken = append(result.Taken, t.Token.Service)
		}
		for _, h := range choice.Left {
			result.Left = append(result.Left, h.Service)
		}
		k.own(fresh.Tokens)
		k.log.Info("tokens were handed in", "taken", strings.Join(result.Taken, " "), "left", strings.Join(result.Left, " "))
	}
	if len(choice.Take.Tokens) > 0 {
		k.adopt(choice.Take, choice.Notes)
	}
	if err := k.mail.remove(mailFile); err != nil { // by the fresh tokens
		k.log.Warn("cannot remove the file of tokens that were handed in", "err", err)
	}
	if len(choice.Take.Tokens) > 0 {
		k.hand(ctx, &result)
	} else {
		k.tell(ctx, appmaster.TokenUpdate{Push: &result})
	}
}

// record writes down which tokens are to be cancelled, for another attempt of this ApplicationMaster. Without their passwords nobody can use them.
func (k *tokenKeeper) record() {
	var c token.Credentials
	for _, ts := range k.mine {
		for _, t := range ts {
			if k.isLent(t.Token) {
				continue
			}
			t.Token.Password = nil
			c.Tokens = append(c.Tokens, t)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelLimit)
	defer cancel()
	if err := k.mail.write(ctx, recordFile, c.Append(nil)); err != nil {
		k.log.Info("cannot note which tokens are to be cancelled at the end", "err", err)
	}
}

// leftBehind are the tokens that an earlier attempt has got for itself.
func (k *tokenKeeper) leftBehind() [][]token.Named {
	data, _, err := k.mail.read(recordFile)
	if err != nil {
		return nil
	}
	c, err := token.Parse(data)
	if err != nil || len(c.Tokens) == 0 {
		return nil
	}
	return [][]token.Named{slices.Clone(c.Tokens)}
}

// serviceName is a token's service, for people.
func serviceName(t appmaster.Token) string { return cmp.Or(t.Service, "-") }
