package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/appmaster"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
)

// TestSiblingLog: a container's log is beside ours, on whichever disk.
func TestSiblingLog(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "app"), filepath.Join(t.TempDir(), "app")
	for _, dir := range []string{filepath.Join(one, "c1"), filepath.Join(two, "c1"), filepath.Join(two, "c2")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(two, "c2", "stderr"), []byte("a\nb\nc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := filepath.Join(one, "c1") + "," + filepath.Join(two, "c1")
	if got := siblingLog(dirs, "c1", "c2", 2); !slices.Equal(got, []string{"b", "c"}) && len(got) != 2 {
		t.Errorf("the lines are %q", got)
	}
	for _, x := range [][2]string{{"c1", "c3"}, {"c9", "c2"}} {
		if got := siblingLog(dirs, x[0], x[1], 2); got != nil {
			t.Errorf("of %v: %q", x, got)
		}
	}
}

// slot is a tokenMail for one file.
type slot struct {
	data    []byte
	info    hdfs.Info
	record  []byte
	removed bool
}

func (s *slot) read(name string) ([]byte, hdfs.Info, error) {
	switch {
	case name == mailFile && s.data != nil:
		return s.data, s.info, nil
	case name == recordFile && s.record != nil:
		return s.record, hdfs.Info{}, nil
	}
	return nil, hdfs.Info{}, fs.ErrNotExist
}

func (s *slot) write(_ context.Context, name string, data []byte) error {
	if name == recordFile {
		s.record = data
		return nil
	}
	s.data, s.info = data, hdfs.Info{Owner: "alice", Mode: 0o600}
	return nil
}

func (s *slot) remove(string) error {
	s.data, s.removed = nil, true
	return nil
}

// rmToken is a token of alice's that ends hours after now.
func rmToken(t *testing.T, owner string, hours int) token.Named {
	t.Helper()
	now := time.Now()
	id, err := proto.Marshal(&pb.YARNDelegationTokenIdentifierProto{Owner: &owner, Renewer: proto.String("rm"), IssueDate: proto.Int64(now.UnixMilli()), MaxDate: proto.Int64(now.Add(time.Duration(hours) * time.Hour).UnixMilli())})
	if err != nil {
		t.Fatal(err)
	}
	return token.Named{Alias: "rm", Token: token.Token{Kind: token.KindRM, Service: "rm:8032", Identifier: id, Password: []byte(fmt.Sprint("secret", hours))}}
}

// newKeeper is a keeper without a keytab, which holds a token for HDFS and one of the ResourceManager's that is good for five hours.
func newKeeper(t *testing.T, mail tokenMail) *tokenKeeper {
	t.Helper()
	hc := hadoopConf(t, map[string]string{"hadoop.security.authentication": "kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST@R", "hadoop.security.auth_to_local": "RULE:[1:$1@$0](.*@R)s/@.*// DEFAULT"})
	have := token.Credentials{Tokens: []token.Named{
		{Alias: "ha-hdfs:ns", Token: token.Token{Kind: token.KindHDFS, Service: "ha-hdfs:ns", Identifier: append([]byte("\x00\x07alice@R"), 0, 0, 0, 0, 1, 1)}}, rmToken(t, "alice@R", 5)}}
	id, err := identity.Open(identity.Config{Conf: hc, Env: func(n string) (string, bool) { return "/nowhere", n == "KRB5_CONFIG" }, Credentials: &have})
	if err != nil {
		t.Fatal(err)
	}
	return &tokenKeeper{id: id, have: have, mail: mail, out: make(chan appmaster.TokenUpdate, 1), look: make(chan struct{}, 1), log: slog.New(slog.DiscardHandler)}
}

// TestHandedIn: what is handed in is taken if it is the user's, nobody else can have written or read it, and it is good for longer.
func TestHandedIn(t *testing.T) {
	for _, x := range []struct {
		name    string
		token   func(*testing.T) token.Named
		spoil   func(*slot)
		force   bool
		taken   bool
		refused string
	}{
		{name: "longer", token: func(t *testing.T) token.Named { return rmToken(t, "alice@R", 7) }, taken: true},
		{name: "shorter", token: func(t *testing.T) token.Named { return rmToken(t, "alice@R", 3) }},
		{name: "forced", token: func(t *testing.T) token.Named { return rmToken(t, "alice@R", 3) }, force: true, taken: true},
		{name: "another's", token: func(t *testing.T) token.Named { return rmToken(t, "bob@R", 7) }, refused: "not made for alice"},
		{name: "for YARN", token: func(*testing.T) token.Named { return token.Named{Token: token.Token{Kind: token.KindAMRM}} }, refused: "others besides"},
		{name: "written by another", token: func(t *testing.T) token.Named { return rmToken(t, "alice@R", 7) }, spoil: func(s *slot) { s.info.Owner = "bob" }, refused: "belongs to bob"},
		{name: "open to all", token: func(t *testing.T) token.Named { return rmToken(t, "alice@R", 7) }, spoil: func(s *slot) { s.info.Mode = 0o644 }, refused: "mode 644"},
		{name: "no tokens", token: func(t *testing.T) token.Named { return rmToken(t, "alice@R", 7) }, spoil: func(s *slot) { s.data = []byte("x") }, refused: "HDTS"},
	} {
		t.Run(x.name, func(t *testing.T) {
			mail := &slot{}
			k := newKeeper(t, mail)
			if k.receive(t.Context()); len(k.out) != 0 {
				t.Fatal("tokens came from nowhere")
			}
			data, err := letter{ID: "1", Force: x.force}.seal(token.Credentials{Tokens: []token.Named{x.token(t)}})
			if err != nil {
				t.Fatal(err)
			}
			if err := mail.write(t.Context(), mailFile, data); err != nil {
				t.Fatal(err)
			}
			if x.spoil != nil {
				x.spoil(mail)
			}
			k.receive(t.Context())
			news := <-k.out
			if (news.Credentials != nil) != x.taken || (len(news.Push.Taken) == 1) != x.taken || !strings.Contains(news.Push.Refused, x.refused) || (news.Push.Refused == "") != (x.refused == "") || !mail.removed {
				t.Errorf("what came of it: %+v, %d bytes", news.Push, len(news.Credentials))
			}
			if x.refused != "" {
				return
			}
			if bytes.Contains(mail.record, []byte("secret")) || len(k.leftBehind()) != 1 {
				t.Error("what is noted for another attempt holds a secret, or no token")
			}
			if i := slices.IndexFunc(news.Held, func(h appmaster.Token) bool { return h.Kind == token.KindRM }); !news.Held[i].Minor {
				t.Errorf("it is said to hold %+v", news.Held)
			}
		})
	}
}

// TestTokenPush is the side of who hands tokens in.
func TestTokenPush(t *testing.T) {
	p := &tokenPush{letter: letter{ID: "mine"}, say: newProgress(&session{env: Env{Stderr: io.Discard}}, "job", "app", true, nil)}
	now := time.Now()
	snap := func(r *appmaster.PushResult, agents ...uint64) *appmaster.Snapshot {
		s := &appmaster.Snapshot{Time: now, Tokens: &appmaster.Tokens{Push: r, Version: 3}}
		for _, v := range agents {
			s.Agents = append(s.Agents, appmaster.Agent{ID: "agent-1", State: "alive", Tokens: v})
		}
		return s
	}
	for _, x := range []struct {
		name string
		snap *appmaster.Snapshot
		done bool
		err  string
	}{
		{"not yet", snap(nil), false, "has not taken"},
		{"another's", snap(&appmaster.PushResult{ID: "other"}), false, "has not taken"},
		{"refused", snap(&appmaster.PushResult{ID: "mine", Refused: "why"}), true, "why"},
		{"kept", snap(&appmaster.PushResult{ID: "mine", Left: []string{"a"}}), true, ""},
		{"an agent is late", snap(&appmaster.PushResult{ID: "mine", Taken: []string{"a"}, Version: 3}, 2, 3), false, "agent-1"},
		{"in use", snap(&appmaster.PushResult{ID: "mine", Taken: []string{"a"}, Version: 3}, 3, 3), true, ""},
	} {
		_, done, err := p.look(x.snap)
		if done != x.done || (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %v, %v", x.name, done, err)
		}
	}
	ended := &appmaster.Snapshot{Time: now, Tokens: &appmaster.Tokens{Held: []appmaster.Token{{Kind: token.KindHDFS, Service: "nn", Until: now, Source: "submission"}}}}
	if err := pushable(ended); err == nil || !strings.Contains(err.Error(), "can't read HDFS") {
		t.Errorf("when it is too late: %v", err)
	}
	ended.Tokens.Held[0].Until = now.Add(time.Minute)
	if err := pushable(ended); err != nil {
		t.Errorf("a minute before: %v", err)
	}
	if text := tokensLine(ended); text != "tokens: the one for nn ends in 1m0s" || !tokensSoon(ended) {
		t.Errorf("status says %q", text)
	}
}

// hdfsToken is a token for HDFS that ends for good at a time.
func hdfsToken(end time.Time) token.Named {
	id := append([]byte("\x00\x07alice@R\x02rm\x00"), 1, 0x8a) // version, owner, renewer, real user, issued at 1 ms, and a number of six bytes
	for shift := 40; shift >= 0; shift -= 8 {
		id = append(id, byte(end.UnixMilli()>>shift))
	}
	return token.Named{Alias: "ha-hdfs:ns", Token: token.Token{Kind: token.KindHDFS, Service: "ha-hdfs:ns", Identifier: append(id, 1, 1)}}
}

// TestLifeNote: who submits without a keytab hears how long the job can run, if that may be too short.
func TestLifeNote(t *testing.T) {
	now := time.Now()
	for _, x := range []struct {
		name    string
		left    time.Duration
		endless bool
		keytab  bool
		want    string
	}{
		{"a stream", 7 * 24 * time.Hour, true, false, "7 days"}, {"a batch", 7 * 24 * time.Hour, false, false, ""}, {"a batch, and short tokens", time.Hour, false, false, "1h0m0s"},
		{"a keytab", time.Hour, true, true, ""},
	} {
		c := token.Credentials{Tokens: []token.Named{hdfsToken(now.Add(x.left)), rmToken(t, "alice@R", 0)}}
		if x.keytab {
			c.Secrets = []token.Secret{{Name: kerberosSecret, Value: []byte("x")}}
		}
		got := lifeNote(c, "application_1_1", "heddle", x.endless, now.Truncate(time.Millisecond))
		if (got == "") != (x.want == "") || !strings.Contains(got, x.want) || got != "" && !strings.Contains(got, "heddle tokens push application_1_1") {
			t.Errorf("%s: %q", x.name, got)
		}
	}
	if got := lifeNote(token.Credentials{}, "", "", true, now); got != "" {
		t.Errorf("without security: %q", got)
	}
}
