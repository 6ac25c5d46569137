package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// master is a server that answers a session by a function.
type master struct {
	ctlpb.UnimplementedControlServer
	serve func(ctlpb.Control_SessionServer) error
}

func (m master) Session(s ctlpb.Control_SessionServer) error { return m.serve(s) }

// serve starts a master of a new application and returns secrets for agent-1 of it.
func serve(t *testing.T, f func(ctlpb.Control_SessionServer) error) AgentSecrets {
	t.Helper()
	return serveWith(t, f, handshakeTimeout, maxHandshakes)
}

func serveWith(t *testing.T, f func(ctlpb.Control_SessionServer) error, timeout time.Duration, most int) AgentSecrets {
	t.Helper()
	authority, err := pki.NewAuthority("app")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(authority, master{serve: f}, timeout, most, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return secretsFor(t, authority, l.Addr().String())
}

func secretsFor(t *testing.T, authority *pki.Authority, addr string) AgentSecrets {
	t.Helper()
	leaf, err := authority.Agent(pki.Name{App: "app", Agent: "agent-1", Container: "agent-1"})
	if err != nil {
		t.Fatal(err)
	}
	return AgentSecrets{
		App: "app", AgentID: "agent-1", ContainerID: "agent-1", MasterAddr: addr,
		Cert: string(leaf.Cert), Key: string(leaf.Key), CA: string(authority.CertPEM()), ExchangeKey: pki.NewExchangeKey(),
	}
}

var register = &ctlpb.Register{AgentId: "agent-1", Slots: 2}

// drain calls Recv until it fails, as an agent must.
func drain(s *Session) <-chan error {
	end := make(chan error, 1)
	go func() {
		for {
			if _, err := s.Recv(); err != nil {
				end <- err
				return
			}
		}
	}()
	return end
}

func TestSession(t *testing.T) {
	const messages = 100
	caller := make(chan cluster.AgentID, 1)
	got := make(chan int, 1)
	secrets := serve(t, func(s ctlpb.Control_SessionServer) error {
		id, err := Caller(s.Context())
		if err != nil {
			return err
		}
		caller <- id.Agent
		if m, err := s.Recv(); err != nil || m.GetRegister().GetSlots() != 2 {
			t.Errorf("first message %v, %v", m, err)
		}
		if err := s.Send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Registered{Registered: &ctlpb.Registered{JobId: "j"}}}); err != nil {
			return err
		}
		for n := 0; ; n++ {
			if _, err := s.Recv(); errors.Is(err, io.EOF) {
				got <- n
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	s, answer, err := Join(t.Context(), secrets, register, JoinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if id := <-caller; id != "agent-1" || answer.GetJobId() != "j" {
		t.Errorf("caller %q, answer %v", id, answer)
	}
	end := drain(s)
	for range messages {
		if err := s.Send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Heartbeat{Heartbeat: &ctlpb.Heartbeat{}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != messages {
		t.Errorf("master got %d messages before the end, want %d", n, messages)
	}
	if err := <-end; !errors.Is(err, io.EOF) {
		t.Errorf("Recv at the end: %v, want EOF", err)
	}
	if err := s.Send(&ctlpb.FromAgent{}); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
}

func TestRefused(t *testing.T) {
	calls := 0
	secrets := serve(t, func(s ctlpb.Control_SessionServer) error {
		calls++
		return s.Send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Refused{Refused: &ctlpb.Refused{Reason: "stranger"}}})
	})
	_, _, err := Join(t.Context(), secrets, register, JoinOptions{})
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Reason != "stranger" || calls != 1 {
		t.Errorf("Join = %v after %d calls, want one refusal", err, calls)
	}
}

// TestPersistent shows that Join tries again after Unavailable, and after nothing else.
func TestPersistent(t *testing.T) {
	for _, c := range []struct {
		code  codes.Code
		calls int
	}{{codes.Unavailable, 3}, {codes.PermissionDenied, 1}} {
		calls := 0
		secrets := serve(t, func(s ctlpb.Control_SessionServer) error {
			if calls++; calls < 3 {
				return status.Error(c.code, "not now")
			}
			return s.Send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Registered{Registered: &ctlpb.Registered{}}})
		})
		s, _, err := Join(t.Context(), secrets, register, JoinOptions{})
		if (err == nil) != (c.calls == 3) || calls != c.calls {
			t.Errorf("%v: Join = %v after %d calls, want %d", c.code, err, calls, c.calls)
		}
		if err == nil {
			drain(s)
			_ = s.Close()
		}
	}
}

func TestUnreachable(t *testing.T) {
	authority, err := pki.NewAuthority("app")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, _, err = Join(t.Context(), secretsFor(t, authority, addr), register, JoinOptions{Wait: 200 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Join = %v, want an error with address and reason", err)
	}
	began := time.Now()
	_, _, err = Join(t.Context(), secretsFor(t, authority, addr), register, JoinOptions{Wait: time.Hour, Refused: 100 * time.Millisecond})
	if took := time.Since(began); err == nil || took > time.Minute {
		t.Errorf("Join = %v after %v, want it to give up where nobody listens", err, took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err = Join(ctx, secretsFor(t, authority, addr), register, JoinOptions{}); err == nil {
		t.Error("Join with a cancelled context succeeded")
	}
}

// TestStranger shows that an agent of another application does not get in, and does not hang.
func TestStranger(t *testing.T) {
	ours := serve(t, func(ctlpb.Control_SessionServer) error { t.Error("a stranger got in"); return nil })
	other, err := pki.NewAuthority("other")
	if err != nil {
		t.Fatal(err)
	}
	theirs := secretsFor(t, other, ours.MasterAddr)
	theirs.CA = ours.CA
	if _, _, err := Join(t.Context(), theirs, register, JoinOptions{Wait: 300 * time.Millisecond}); err == nil {
		t.Error("Join succeeded")
	}
}

// TestStrangerIsNoticed joins the master of another application, as secrets that were mixed up do: both sides learn of it at once.
func TestStrangerIsNoticed(t *testing.T) {
	authority, err := pki.NewAuthority("app")
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewAuthority("other")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 100)
	s, err := NewServer(authority, master{}, func(peer net.Addr, err error) { seen <- fmt.Sprint(peer, " ", err) })
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	defer func() { s.Stop(); <-done }()
	theirs := secretsFor(t, other, l.Addr().String())
	_, _, err = Join(t.Context(), theirs, register, JoinOptions{Wait: time.Hour, Firm: true})
	if stranger, ok := errors.AsType[*StrangerError](err); !ok || stranger.Addr != theirs.MasterAddr {
		t.Errorf("the agent ends with %v", err)
	}
	if text := <-seen; !strings.HasPrefix(text, "127.0.0.1:") || !strings.Contains(text, "certificate") {
		t.Errorf("the master hears of %q", text)
	}
	tries := 0
	_, _, err = Join(t.Context(), theirs, register, JoinOptions{Wait: 300 * time.Millisecond, Failed: func(error) { tries++ }})
	if err == nil || tries == 0 {
		t.Errorf("not firm: %v after %d tries that failed", err, tries)
	}
}

func TestSecrets(t *testing.T) {
	authority, err := pki.NewAuthority("app")
	if err != nil {
		t.Fatal(err)
	}
	want := secretsFor(t, authority, "127.0.0.1:1")
	want.Options = map[string]string{"kafka.sasl.password": "x"}
	path := filepath.Join(t.TempDir(), SecretsFile)
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSecrets(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ReadSecrets = %+v, %v", got, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSecrets(path); !errors.Is(err, os.ErrPermission) {
		t.Errorf("ReadSecrets of a file others can read: %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func FuzzParseSecrets(f *testing.F) {
	f.Add([]byte(`{"agent_id":"a","master_addr":"b:1","exchange_key":"AAAA"}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"key":"hunter2",`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseSecrets(data)
		if err == nil && (s.AgentID == "" || len(s.ExchangeKey) != pki.ExchangeKeySize) {
			t.Errorf("accepted %+v", s)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Error("the error shows a secret")
		}
	})
}

func TestConvert(t *testing.T) {
	id := cluster.ExecutionID{Vertex: 1, Subtask: 2, Attempt: 3}
	if got := Execution(PBExecution(id)); got != id {
		t.Errorf("execution %v, want %v", got, id)
	}
	f := cluster.Failure{Kind: cluster.Corrupt, Message: "m", Operator: "o", Peer: "p"}
	if got := Failure(PBFailure(f)); got != f {
		t.Errorf("failure %+v, want %+v", got, f)
	}
	if got := Failure(&ctlpb.Error{Kind: 99}); got.Kind != cluster.Internal || got.Message == "" {
		t.Errorf("failure of an unknown kind: %+v", got)
	}
	for n, ok := range map[int32]bool{-1: false, 0: true, int32(cluster.Failed): true, 8: false} {
		if _, got := State(n); got != ok {
			t.Errorf("State(%d) known: %v, want %v", n, got, ok)
		}
	}
}
