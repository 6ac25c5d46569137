package hrpc_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
)

// TestTunnel lets a client that knows no security speak to a server that demands it.
func TestTunnel(t *testing.T) {
	for _, qop := range []string{"auth", "auth-int", "auth-conf"} {
		for _, edit := range []bool{false, true} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := hrpctest.Serve(l, hrpctest.Config{Password: password, QOP: []string{qop}, Handle: func(r *hrpctest.Request) (proto.Message, error) {
				if r.Protected != (qop != "auth") || r.User != "" || string(r.Identifier) != "id" {
					t.Errorf("%s: a call arrived protected: %v, of the user %q by the token %q", qop, r.Protected, r.User, r.Identifier)
				}
				if r.Method == "fails" {
					return nil, &hrpc.RemoteError{Class: "java.io.IOException", Message: "as asked"}
				}
				return echo(r)
			}})
			cfg := hrpc.TunnelConfig{Addr: l.Addr().String(), Protocol: "p", Auth: tokens(), Protection: []string{qop}}
			if edit {
				cfg.Edit = func(method string, b []byte) []byte {
					if method != "echo" {
						t.Errorf("an answer to %q is to be edited", method)
					}
					return bytes.ReplaceAll(b, []byte("hello"), []byte("HELLO"))
				}
			}
			c := hrpc.New(hrpc.Config{Protocol: "p", Addrs: []string{"a:1"}, Auth: []hrpc.Authenticator{hrpc.Simple("ignored")},
				Dial: func(ctx context.Context, _ string) (net.Conn, error) {
					nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", cfg.Addr)
					if err != nil {
						return nil, err
					}
					if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
						return nil, err
					}
					return hrpc.Tunnel(ctx, nc, cfg)
				}})
			for _, text := range []string{"hello", strings.Repeat("hello", 50000), ""} {
				req, resp := &pb.GetDelegationTokenRequestProto{Renewer: &text}, &pb.GetDelegationTokenRequestProto{}
				if err := c.Call(t.Context(), "echo", req, resp); err != nil {
					t.Fatalf("%s: %v", qop, err)
				}
				want := text
				if edit {
					want = strings.ToUpper(text)
				}
				if resp.GetRenewer() != want {
					t.Errorf("%s: %d bytes came back for %d", qop, len(resp.GetRenewer()), len(text))
				}
			}
			text := "x"
			if err := c.Call(t.Context(), "fails", &pb.GetDelegationTokenRequestProto{Renewer: &text}, &pb.GetDelegationTokenRequestProto{}); hrpc.ClassOf(err) != "java.io.IOException" {
				t.Errorf("%s: %v", qop, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			s.Close()
		}
	}
}
