package cli

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// TestNoTicket: a ResourceManager whose port for RPC is closed by a firewall that drops what comes holds up a command for a moment, and the proxy is left.
func TestNoTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rm, err := yarnclient.Open(yarnclient.Options{Mode: yarnclient.ByRPC, RPC: yarnclient.RPCConfig{Addrs: []string{"rm1:8032", "rm2:8032"}, Auth: []hrpc.Authenticator{hrpc.Simple("bob")},
			Dial: func(ctx context.Context, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }}})
		if err != nil {
			t.Fatal(err)
		}
		defer rm.Close()
		start := time.Now()
		if got := newFollower(&hadoop{rm: rm}, appOne, "").ticket(t.Context()); got != nil || time.Since(start) > ticketTimeout {
			t.Errorf("%v after %v", got, time.Since(start))
		}
	})
}

// TestTickets reads tickets as ResourceManagers make them.
func TestTickets(t *testing.T) {
	ours, err := yarnid.ParseContainer("container_1700000000000_0007_02_000001")
	if err != nil {
		t.Fatal(err)
	}
	made := func(edit func(*yarnid.Attempt), name string) []byte {
		at := ours.Attempt
		edit(&at)
		b, err := proto.Marshal(&pb.ClientToAMTokenIdentifierProto{AppAttemptId: at.Proto(), ClientName: &name})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	same := func(*yarnid.Attempt) {}
	k := &tickets{attempt: ours.Attempt,
		short: func(client string) (string, error) {
			name, realm, _ := strings.Cut(client, "@")
			if realm == "ELSEWHERE" {
				return "", errors.New("no rule applies")
			}
			return name, nil
		}}
	if _, err := k.of(made(same, "bob@R")); err == nil || !strings.Contains(err.Error(), "has not told by which key") {
		t.Errorf("before the key is known: %v", err)
	}
	k.learn([]byte("old"))
	k.learn([]byte("master"))
	for _, name := range []string{"alice@R", "bob"} {
		id := made(same, name)
		mac := hmac.New(sha1.New, []byte("master"))
		mac.Write(id)
		got, err := k.of(id)
		if err != nil || !hmac.Equal(got.Password, mac.Sum(nil)) || got.User != strings.TrimSuffix(name, "@R") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, id := range map[string][]byte{
		"another attempt":     made(func(a *yarnid.Attempt) { a.Number = 1 }, "alice@R"),
		"another application": made(func(a *yarnid.Attempt) { a.App.Number++ }, "alice@R"),
		"nobody":              made(same, ""),
		"an unknown realm":    made(same, "alice@ELSEWHERE"),
		"none":                nil,
		"garbage":             []byte("\xff\xff\xff"),
	} {
		if got, err := k.of(id); err == nil {
			t.Errorf("%s is taken for %+v", name, got)
		}
	}
}
