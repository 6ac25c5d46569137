package creds

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

var epoch = time.UnixMilli(1_700_000_000_000)

// rm is a token of the ResourceManager's that ends hours after epoch.
func rm(alias string, hours int) token.Named {
	id, err := proto.Marshal(&pb.YARNDelegationTokenIdentifierProto{Owner: proto.String("alice@R"), Renewer: proto.String("rm"),
		IssueDate: proto.Int64(epoch.UnixMilli()), MaxDate: proto.Int64(epoch.Add(time.Duration(hours) * time.Hour).UnixMilli())})
	if err != nil {
		panic(err)
	}
	return token.Named{Alias: alias, Token: token.Token{Kind: token.KindRM, Service: alias, Identifier: id, Password: []byte("secret")}}
}

func of(ts ...token.Named) token.Credentials { return token.Credentials{Tokens: ts} }

func TestDescribe(t *testing.T) {
	amrm := token.Named{Token: token.Token{Kind: token.KindAMRM}}
	kafka := token.Named{Alias: "k", Token: token.Token{Kind: token.KindKafka, Service: "k", Identifier: []byte("id")}}
	c, err := WithNotes(of(amrm, rm("b", 9), rm("a", 5), kafka), []Note{{Alias: "k", Owner: "alice", Until: epoch.Add(time.Hour)}, {Alias: "a", Source: Pushed, Until: epoch.Add(8 * time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	notes, err := Notes(c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	held := Describe(c, notes)
	for _, h := range held {
		got = append(got, fmt.Sprintf("%s %s %s %s %v", h.Service, h.Owner, h.Renewer, h.Source, h.Until.Sub(epoch)))
	}
	want := "k alice  submission 1h0m0s; a alice@R rm push 5h0m0s; b alice@R rm submission 9h0m0s"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	if f, ok := First(held); !ok || f.Service != "k" {
		t.Errorf("the first to end is %v", f)
	}
	if _, ok := First(nil); ok {
		t.Error("one of none ends first")
	}
	if n, err := Notes(of()); n != nil || err != nil {
		t.Errorf("notes of none: %v, %v", n, err)
	}
	if _, err := Notes(token.Credentials{Secrets: []token.Secret{{Name: notesSecret, Value: []byte("{")}}}); err == nil {
		t.Error("broken notes are read")
	}
}

func TestChoose(t *testing.T) {
	old := of(rm("a", 5), rm("b", 9))
	fresh := of(rm("a", 7), rm("b", 7), rm("c", 1), token.Named{Token: token.Token{Kind: token.KindAMRM}})
	notes := []Note{{Alias: "a", Source: Pushed, Until: epoch.Add(6 * time.Hour)}, {Alias: "b", Source: Pushed}, {Alias: "c", Source: Pushed}}
	for _, x := range []struct {
		force      bool
		take, left string
	}{{false, "a c", "b"}, {true, "a b c", ""}} {
		c := Choose(old, []Note{{Alias: "z"}}, fresh, notes, x.force)
		var take, left []string
		for _, n := range c.Take.Tokens {
			take = append(take, n.Alias)
		}
		for _, h := range c.Left {
			left = append(left, h.Service)
		}
		if strings.Join(take, " ") != x.take || strings.Join(left, " ") != x.left || len(c.Notes) != 1+len(take) {
			t.Errorf("force %v: takes %q, leaves %q, notes %v", x.force, take, left, c.Notes)
		}
	}
}

func TestWarner(t *testing.T) {
	var w Warner
	var told []string
	end := epoch.Add(7 * 24 * time.Hour)
	for now := epoch; now.Before(end.Add(48 * time.Hour)); now = now.Add(time.Minute) {
		if w.Look(now, epoch, end) {
			told = append(told, end.Sub(now).String())
		}
	}
	if got := strings.Join(told, " "); got != "24h0m0s 12h0m0s 6h0m0s 3h0m0s 1h30m0s 45m0s 22m0s 11m0s 5m0s 2m0s 1m0s 0s" {
		t.Errorf("told at %s", got)
	}
	if w.Look(end.Add(time.Hour), epoch, end.Add(7*24*time.Hour)) {
		t.Error("warns of new tokens at once")
	}
	if !w.Look(epoch.Add(6*time.Minute+time.Second), epoch, epoch.Add(8*time.Minute)) || !w.Next().Before(epoch.Add(8*time.Minute)) {
		t.Errorf("does not warn of short ones in time; next %v", w.Next())
	}
}
