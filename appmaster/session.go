package appmaster

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// queueLimit is how many messages may wait for one agent. A healthy one takes thousands a second; one that lets
// so many pile up takes nothing, and is treated as lost.
const queueLimit = 4096

// session is the master's side of an agent's session. The loop sends; the writer, which is gRPC's goroutine for the call, takes
// from the queue; a reader brings messages to the loop.
type session struct {
	// Immutable.
	agent cluster.AgentID
	peer  ctl.Peer      // as its certificate says
	wake  chan struct{} // capacity 1: the queue is not empty, or the end is near

	// Owned by the loop.
	accepted bool

	// Guarded by mu.
	mu       sync.Mutex
	queue    []*ctlpb.FromMaster
	finished bool // send the queue, then end
	overflow bool
}

func newSession(agent cluster.AgentID) *session {
	return &session{agent: agent, wake: make(chan struct{}, 1)}
}

// send queues a message. It never waits.
func (s *session) send(m *ctlpb.FromMaster) {
	s.mu.Lock()
	if len(s.queue) >= queueLimit {
		s.overflow = true
	} else if !s.finished {
		s.queue = append(s.queue, m)
	}
	s.mu.Unlock()
	s.poke()
}

// finish ends the session when the queue has been sent.
func (s *session) finish() {
	s.mu.Lock()
	s.finished = true
	s.mu.Unlock()
	s.poke()
}

func (s *session) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *session) take() (queue []*ctlpb.FromMaster, finished, overflow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, s.queue = s.queue, nil
	return queue, s.finished, s.overflow
}

var errOverflow = errors.New("it does not take what is sent to it")

// write is the writer: it returns when the session is finished or broken. ended is closed when the reader has ended.
func (s *session) write(stream ctlpb.Control_SessionServer, ended <-chan struct{}) error {
	for {
		select {
		case <-s.wake:
		case <-ended:
			return nil
		}
		queue, finished, overflow := s.take()
		for _, m := range queue {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		switch {
		case overflow:
			return errOverflow
		case finished:
			return nil
		}
	}
}

// server is the control plane's gRPC service.
type server struct {
	ctlpb.UnimplementedControlServer
	m *master
}

// Session serves one agent. Who it is, its certificate says.
func (s server) Session(stream ctlpb.Control_SessionServer) error {
	peer, err := ctl.Caller(stream.Context())
	if err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	reg := first.GetRegister()
	if reg == nil {
		return status.Error(codes.InvalidArgument, "the first message must be Register")
	}
	if cluster.AgentID(reg.GetAgentId()) != peer.Agent {
		err := fmt.Errorf("agent %q has the certificate of %q", reg.GetAgentId(), peer.Agent)
		s.m.strange(peer.Addr, err)
		return status.Error(codes.PermissionDenied, err.Error())
	}
	sess := newSession(peer.Agent)
	sess.peer = peer
	if !s.m.post(func() { s.m.onRegister(sess, reg) }) {
		return status.Error(codes.FailedPrecondition, over)
	}
	ended := make(chan struct{})
	readErr := error(nil)
	s.m.wg.Go(func() {
		defer close(ended)
		readErr = s.read(sess, stream)
	})
	err = sess.write(stream, ended)
	reason := "it ended"
	select {
	case <-ended:
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			reason = status.Convert(readErr).Message()
			if status.Code(readErr) == codes.Canceled { // how gRPC tells of a peer that went away
				reason = "its connection was closed"
			}
		}
	default:
		if err != nil {
			reason = err.Error()
		}
	}
	s.m.post(func() { s.m.onSessionEnd(sess, reason) })
	if errors.Is(err, errOverflow) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return err
}

// read is the reader: it brings messages to the loop until the stream ends.
func (s server) read(sess *session, stream ctlpb.Control_SessionServer) error {
	for {
		msg, err := stream.Recv()
		if err != nil {
			return err
		}
		if !s.m.post(func() { s.m.onMessage(sess, msg) }) {
			return io.EOF
		}
	}
}
