package hrpc

import (
	"encoding/binary"
	"fmt"
	"net"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// requests cuts what a client writes into frames.
type requests struct {
	max      int    // bytes of a frame
	preamble int    // bytes of it that are still to come
	rest     []byte // an unfinished frame
}

func newRequests(maxFrame int) requests {
	return requests{max: maxFrame, preamble: len(preamble(0))}
}

// feed takes the next piece, of any size, and passes on what it has of the preamble, and each frame that is whole.
func (r *requests) feed(b []byte, first, frame func([]byte) error) error {
	if n := min(r.preamble, len(b)); n > 0 {
		r.preamble -= n
		if err := first(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	r.rest = append(r.rest, b...)
	for len(r.rest) >= 4 {
		size, err := frameLength(r.rest[:4], r.max)
		if err != nil {
			return err
		}
		if len(r.rest) < 4+size {
			break
		}
		if err := frame(r.rest[: 4+size : 4+size]); err != nil {
			return err
		}
		r.rest = r.rest[4+size:]
	}
	if len(r.rest) == 0 {
		r.rest = nil
	}
	return nil
}

// requestOf reads the call id and the method of a request.
func requestOf(b []byte) (int32, string, error) {
	head, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return 0, "", fmt.Errorf("cannot read a request's header: %w", protowire.ParseError(n))
	}
	h := &pb.RpcRequestHeaderProto{}
	if err := proto.Unmarshal(head, h); err != nil {
		return 0, "", fmt.Errorf("cannot read a request's header: %w", err)
	}
	if h.GetCallId() < 0 {
		return h.GetCallId(), "", nil
	}
	next, n := protowire.ConsumeBytes(b[n:])
	r := &pb.RequestHeaderProto{}
	if n < 0 || proto.Unmarshal(next, r) != nil {
		return h.GetCallId(), "", nil
	}
	return h.GetCallId(), r.GetMethodName(), nil
}

// EditRequests returns nc for a client of Hadoop's RPC whose requests edit may change before they are sent, by their method. It is for one that
// does not protect its frames: see Tunnel.
func EditRequests(nc net.Conn, edit func(method string, request []byte) []byte) net.Conn {
	return &editor{Conn: nc, out: newRequests(defaultMaxFrame), edit: edit}
}

// editor is used by one writer at a time.
type editor struct {
	net.Conn
	out  requests
	edit func(method string, request []byte) []byte
}

// Write takes what the client writes, in pieces of any size.
func (e *editor) Write(b []byte) (int, error) {
	if err := e.out.feed(b, e.pass, e.send); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (e *editor) pass(b []byte) error {
	_, err := e.Conn.Write(b)
	return err
}

// send sends a frame, edited.
func (e *editor) send(frame []byte) error {
	_, method, err := requestOf(frame[4:])
	if err != nil {
		return err
	}
	if method == "" {
		return e.pass(frame)
	}
	b := frame[4:]
	_, n := protowire.ConsumeBytes(b)
	_, m := protowire.ConsumeBytes(b[n:]) // requestOf has read both
	request, k := protowire.ConsumeBytes(b[n+m:])
	if k < 0 || n+m+k != len(b) {
		return e.pass(frame)
	}
	out := append(make([]byte, 4, len(frame)+64), b[:n+m]...)
	out = protowire.AppendBytes(out, e.edit(method, request))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return e.pass(out)
}
