package cli

import (
	"crypto/hmac"
	"crypto/sha1"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/appmaster/web"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

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
	k := &tickets{attempt: ours.Attempt, proxy: &web.Proxy{
		View: func(u string) bool { return u == "bob" }, Modify: func(u string) bool { return u == "alice" }},
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
	for name, view := range map[string]bool{"alice@R": true, "bob": true, "carol@R": false} {
		id := made(same, name)
		mac := hmac.New(sha1.New, []byte("master"))
		mac.Write(id)
		got, err := k.of(id)
		if err != nil || !hmac.Equal(got.Password, mac.Sum(nil)) || got.View != view || got.Modify != strings.HasPrefix(name, "alice") || got.User != strings.TrimSuffix(name, "@R") {
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
