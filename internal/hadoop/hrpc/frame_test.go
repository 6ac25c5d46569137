package hrpc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// TestFrames compares with frames that Hadoop accepts, field by field, since their order may differ.
func TestFrames(t *testing.T) {
	for name, x := range map[string]struct {
		hex  string
		msgs []proto.Message
	}{
		"negotiate": {"0000000e0a2200280108021000184102 1001", []proto.Message{requestHeader(callSASL, []byte{}, -1), &pb.RpcSaslProto{State: pb.RpcSaslProto_NEGOTIATE.Enum()}}},
		"ping":      {"0000001b1a1000180722100001020304050607 08090a0b0c0d0e0f28010802", []proto.Message{requestHeader(callPing, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, -1)}},
	} {
		want, err := hex.DecodeString(strings.ReplaceAll(x.hex, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendFrame(nil, x.msgs...)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) || !bytes.Equal(got[:5], want[:5]) {
			t.Errorf("%s: got %x, want %x in some order", name, got, want)
		}
		a, b := &pb.RpcRequestHeaderProto{}, &pb.RpcRequestHeaderProto{}
		n := int(want[4])
		if err := proto.Unmarshal(got[5:5+n], a); err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(want[5:5+n], b); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(a, b) || !bytes.Equal(got[5+n:], want[5+n:]) {
			t.Errorf("%s: header %v, want %v", name, a, b)
		}
	}
}

func TestReadFrame(t *testing.T) {
	for in, want := range map[string]string{
		"HTTP/1.1 404": "web port", "\xff\xff\xff\xff": "older version", "\x00\x00\x00\x00": "length 0", "\x80\x00\x00\x00": "length -2147483648",
		"\x00\x00\x10\x00": "more than", "\x00\x00\x00\x05abc": "EOF", "\x00\x00": "EOF",
	} {
		if _, err := readFrame(strings.NewReader(in), 100); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
	if b, err := readFrame(strings.NewReader("\x00\x00\x00\x02okmore"), 100); err != nil || string(b) != "ok" {
		t.Errorf("good frame: %q, %v", b, err)
	}
	// A large announcement followed by nothing must not take the memory it announces.
	if n := testing.AllocsPerRun(1, func() { _, _ = readFrame(strings.NewReader("\x07\x00\x00\x00x"), 1<<30) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzResponse(f *testing.F) {
	id := uint32(3)
	ok, _ := appendFrame(nil, &pb.RpcResponseHeaderProto{CallId: &id, Status: pb.RpcResponseHeaderProto_SUCCESS.Enum()}, &pb.RpcSaslProto{State: pb.RpcSaslProto_WRAP.Enum()})
	f.Add(ok[4:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseResponse(b)
		if err == nil && r.header.GetStatus() == pb.RpcResponseHeaderProto_SUCCESS && r.body == nil {
			t.Error("an answer without a body")
		}
		if err == nil {
			_ = remoteError("a", "m", r.header).Error()
		}
	})
}

// script is a connection whose other side says what it says.
type script struct {
	io.Reader
	net.Conn
}

func (s script) Read(b []byte) (int, error)  { return s.Reader.Read(b) }
func (s script) Write(b []byte) (int, error) { return len(b), nil }
func (s script) Close() error                { return nil }
func (s script) SetDeadline(time.Time) error { return nil }

// FuzzLogin is a server that answers an authentication with anything.
func FuzzLogin(f *testing.F) {
	sasl := callSASL
	id := uint32(sasl)
	h := &pb.RpcResponseHeaderProto{CallId: &id, Status: pb.RpcResponseHeaderProto_SUCCESS.Enum()}
	offer := &pb.RpcSaslProto{State: pb.RpcSaslProto_NEGOTIATE.Enum(), Auths: []*pb.RpcSaslProto_SaslAuth{{
		Method: proto.String("TOKEN"), Mechanism: proto.String("DIGEST-MD5"), Protocol: proto.String(""), ServerId: proto.String("default"),
		Challenge: []byte(`realm="default",nonce="x",qop="auth",algorithm=md5-sess`)}}}
	b, _ := appendFrame(nil, h, offer)
	b, _ = appendFrame(b, h, &pb.RpcSaslProto{State: pb.RpcSaslProto_SUCCESS.Enum(), Token: []byte("rspauth=00")})
	f.Add(b)
	f.Add(binary.BigEndian.AppendUint32(nil, 0))
	auths := []Authenticator{ByToken(token.Token{Identifier: []byte("i"), Password: []byte("p")})}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := login(t.Context(), script{Reader: bytes.NewReader(b)}, "a", "p", auths, nil, 1<<16); err == nil {
			t.Error("a server that does not know the password is accepted")
		}
	})
}
