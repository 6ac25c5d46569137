package hrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// Call ids with a meaning of their own.
const (
	callAuthFailed int32 = -1 // answers only: refused before any call
	callContext    int32 = -3
	callPing       int32 = -4
	callSASL       int32 = -33
)

// defaultMaxFrame bounds frames where a configuration doesn't, in bytes.
const defaultMaxFrame = 128 << 20

const (
	authNone = 0x00
	authSASL = 0xDF
)

func preamble(auth byte) []byte { return []byte{'h', 'r', 'p', 'c', 9, 0, auth} }

// appendFrame writes a frame of a header and messages.
func appendFrame(b []byte, msgs ...proto.Message) ([]byte, error) {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	for _, m := range msgs {
		size := proto.Size(m)
		b = protowire.AppendVarint(b, uint64(size))
		var err error
		if b, err = (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend(b, m); err != nil {
			return nil, err
		}
	}
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b, nil
}

func requestHeader(id int32, clientID []byte, retry int32) *pb.RpcRequestHeaderProto {
	return &pb.RpcRequestHeaderProto{
		RpcKind: pb.RpcKindProto_RPC_PROTOCOL_BUFFER.Enum(), RpcOp: pb.RpcRequestHeaderProto_RPC_FINAL_PACKET.Enum(),
		CallId: &id, ClientId: clientID, RetryCount: &retry,
	}
}

// readFrame reads one frame's body of at most limit bytes.
func readFrame(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n, err := frameLength(head[:], limit)
	if err != nil {
		return nil, err
	}
	// A large body is read as it comes, so that its announcement alone takes no memory.
	const step = 1 << 20
	body := make([]byte, 0, min(n, step))
	for len(body) < n {
		from := len(body)
		to := min(n, from+step)
		body = append(body, make([]byte, to-from)...)
		if _, err := io.ReadFull(r, body[from:to]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return body, nil
}

func frameLength(head []byte, limit int) (int, error) {
	n := int64(int32(binary.BigEndian.Uint32(head)))
	switch {
	case string(head) == "HTTP":
		return 0, errors.New("it answers HTTP: this is a web port, not an RPC port")
	case n == -1:
		return 0, errors.New("it speaks an older version of Hadoop's RPC")
	case n <= 0:
		return 0, fmt.Errorf("it sent a frame of length %d: this may not be a Hadoop RPC port", n)
	case n > int64(limit):
		return 0, fmt.Errorf("it sent a frame of %d bytes, more than the %d allowed", n, limit)
	}
	return int(n), nil
}

// response is one answer: its header and the message after it.
type response struct {
	id     int32
	header *pb.RpcResponseHeaderProto
	body   []byte // the message; nil if the status is not SUCCESS
}

// parseResponse reads a frame's body.
func parseResponse(b []byte) (response, error) {
	head, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return response{}, fmt.Errorf("cannot read an answer's header: %w", protowire.ParseError(n))
	}
	h := &pb.RpcResponseHeaderProto{}
	if err := proto.Unmarshal(head, h); err != nil {
		return response{}, fmt.Errorf("cannot read an answer's header: %w", err)
	}
	r := response{id: int32(h.GetCallId()), header: h}
	rest := b[n:]
	if h.GetStatus() != pb.RpcResponseHeaderProto_SUCCESS {
		if len(rest) > 0 {
			return r, errors.New("cannot read an answer: bytes follow an error")
		}
		return r, nil
	}
	body, n := protowire.ConsumeBytes(rest)
	if n < 0 {
		return r, fmt.Errorf("cannot read an answer's message: %w", protowire.ParseError(n))
	}
	if n != len(rest) {
		return r, errors.New("cannot read an answer: bytes follow its message")
	}
	r.body = body
	if r.body == nil {
		r.body = []byte{}
	}
	return r, nil
}
