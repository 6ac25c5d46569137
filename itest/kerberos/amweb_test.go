package kerberos

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/appmaster/web"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// tickets asks the ApplicationMaster directly by the tokens that the ResourceManager gives by RPC to those who may see the application: alice may all, bob
// look, carol gets none, and none is good for another name, attempt or request.
func (v *target) tickets(t *testing.T) {
	id, err := yarnid.ParseApplication(v.app)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ticket := func(user string) *token.Token {
		t.Helper()
		rm, _ := v.yarn(t, v.identity(t, user), yarnclient.ByRPC)
		got, err := rm.ClientToken(ctx, id)
		if err != nil {
			t.Errorf("%s: %v", user, err)
		}
		return got
	}
	alice, bob, carol := ticket("alice"), ticket("bob"), ticket("carol")
	if alice == nil || bob == nil || carol != nil {
		t.Fatalf("the ResourceManager's tickets: alice's %v, bob's %v, carol's %v", alice, bob, carol)
	}
	direct := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 99)}}).DialContext}
	defer direct.CloseIdleConnections()
	request := func(by *token.Token, method, path, body string) *http.Request {
		req, err := http.NewRequestWithContext(ctx, method, "http://"+v.report.AMAddress+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		web.ByTicket(by.Identifier, by.Password).Prove(req, []byte(body), nil)
		return req
	}
	altered := func(edit func(*pb.ClientToAMTokenIdentifierProto)) *token.Token {
		var p pb.ClientToAMTokenIdentifierProto
		if err := proto.Unmarshal(bob.Identifier, &p); err != nil {
			t.Fatal(err)
		}
		edit(&p)
		b, err := proto.Marshal(&p)
		if err != nil {
			t.Fatal(err)
		}
		return &token.Token{Identifier: b, Password: bob.Password}
	}
	for name, x := range map[string]struct {
		by           *token.Token
		method, path string
		code         int
	}{
		"alice looks":         {alice, "GET", "/api/job", 200},
		"bob looks":           {bob, "GET", "/api/job", 200},
		"bob acts":            {bob, "PUT", "/api/job/cancel", 403},
		"bob takes a profile": {bob, "GET", "/api/profiles", 403},
		"bob as alice": {altered(func(p *pb.ClientToAMTokenIdentifierProto) {
			p.ClientName = proto.String(strings.Replace(p.GetClientName(), "bob", "alice", 1))
		}), "PUT", "/api/job/cancel", 401},
		"for another attempt":     {altered(func(p *pb.ClientToAMTokenIdentifierProto) { p.AppAttemptId.AttemptId = proto.Int32(9) }), "GET", "/api/job", 401},
		"for another application": {altered(func(p *pb.ClientToAMTokenIdentifierProto) { p.AppAttemptId.ApplicationId.Id = proto.Int32(999) }), "GET", "/api/job", 401},
		"another password":        {&token.Token{Identifier: bob.Identifier, Password: alice.Password}, "GET", "/api/job", 401},
	} {
		if code, body := answer(t, direct, request(x.by, x.method, x.path, ""), nil); code != x.code {
			t.Errorf("%s: %d, want %d: %.300s", name, code, x.code, body)
		}
	}
	if code, body := answer(t, direct, request(alice, "PUT", "/api/log-level?level=info", ""), nil); code != 202 {
		t.Errorf("alice acts: %d %.300s", code, body)
	}
	once := request(bob, "GET", "/api/job", "")
	again := once.Clone(ctx)
	if code, body := answer(t, direct, once, nil); code != 200 {
		t.Errorf("once: %d %.300s", code, body)
	}
	if code, body := answer(t, direct, again, nil); code != 401 {
		t.Errorf("played back: %d %.300s", code, body)
	}
	v.byCommand(t)
}

// byCommand asks as bob by a command that knows nothing but the application's name, with the ResourceManager's RPC alone.
func (v *target) byCommand(t *testing.T) {
	file := filepath.Join(v.bed.Dir("attacks"), "cc-bob")
	v.kdc.Kinit(file, v.kdc.KeytabOf("bob"), "bob")
	out, err := v.heddle(t, v.exe, []string{"KRB5CCNAME=FILE:" + file}, "status", v.app, "--target", "yarn", "--yarn.client", "rpc", "--json")
	if err != nil || !strings.Contains(out, "running") {
		t.Errorf("bob's status by RPC: %v\n%s", err, out)
	}
}
