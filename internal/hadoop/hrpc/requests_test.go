package hrpc

import (
	"bytes"
	"io"
	"net"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// sink is a connection that keeps what is written.
type sink struct {
	net.Conn
	bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) { return s.Buffer.Write(b) }
func (s *sink) Read(b []byte) (int, error)  { return 0, io.EOF }

// session is what a client writes: a preamble, its context, a call and a ping.
func session(t *testing.T, message proto.Message) (b []byte) {
	t.Helper()
	b = preamble(authNone)
	for _, frame := range [][]proto.Message{
		{requestHeader(callContext, []byte("id"), 0), &pb.IpcConnectionContextProto{Protocol: proto.String("p")}},
		{requestHeader(7, []byte("id"), 0), &pb.RequestHeaderProto{MethodName: proto.String("say"), DeclaringClassProtocolName: proto.String("p"), ClientProtocolVersion: proto.Uint64(1)}, message},
		{requestHeader(callPing, []byte("id"), 0)},
	} {
		var err error
		if b, err = appendFrame(b, frame...); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// TestEditRequests changes one call, in whatever pieces it comes, and leaves all else as it is.
func TestEditRequests(t *testing.T) {
	before, after := &pb.RequestHeaderProto{MethodName: proto.String("x")}, &pb.RequestHeaderProto{MethodName: proto.String("longer than it was")}
	for _, m := range []*pb.RequestHeaderProto{before, after} {
		m.DeclaringClassProtocolName, m.ClientProtocolVersion = proto.String("p"), proto.Uint64(1)
	}
	in, want := session(t, before), session(t, after)
	for piece := 1; piece <= len(in); piece++ {
		s := &sink{}
		edited := 0
		c := EditRequests(s, func(method string, request []byte) []byte {
			if edited++; method != "say" {
				t.Errorf("method %q", method)
			}
			if got, err := proto.Marshal(before); err != nil || !bytes.Equal(got, request) {
				t.Errorf("the request is %q", request)
			}
			out, err := proto.Marshal(after)
			if err != nil {
				t.Error(err)
			}
			return out
		})
		for b := in; len(b) > 0; {
			n := min(piece, len(b))
			if k, err := c.Write(b[:n]); k != n || err != nil {
				t.Fatalf("wrote %d of %d bytes: %v", k, n, err)
			}
			b = b[n:]
		}
		if edited != 1 || !bytes.Equal(s.Bytes(), want) {
			t.Fatalf("in pieces of %d: %d edits,\n%q, want\n%q", piece, edited, s.Bytes(), want)
		}
	}
	if _, err := EditRequests(&sink{}, nil).Write(append(preamble(authNone), 0xff, 0, 0, 0)); err == nil {
		t.Error("a frame of 4 GiB was taken")
	}
}

// FuzzEditRequests: an edit that changes nothing changes no more than how lengths are written, in whatever pieces it comes, and nothing that a client may
// write panics.
func FuzzEditRequests(f *testing.F) {
	f.Add([]byte("hrpc\x09\x00\x00\x00\x00\x00\x02\x00\x00"), 3)
	f.Add([]byte("hrpc\x09\x00\x00\x00\x00\x00\x0c\x02\x18\x07\x05\x0a\x03say\x81\x00x"), 5)
	edit := func(in []byte, piece int) ([]byte, error) {
		s := &sink{}
		c := EditRequests(s, func(_ string, request []byte) []byte { return request })
		for b := in; len(b) > 0; {
			n := min(piece, len(b))
			if _, err := c.Write(b[:n]); err != nil {
				return nil, err
			}
			b = b[n:]
		}
		return s.Bytes(), nil
	}
	f.Fuzz(func(t *testing.T, in []byte, piece int) {
		once, err := edit(in, max(1, min(piece, 1<<16)))
		if err != nil {
			return
		}
		if twice, err := edit(once, len(once)+1); err != nil || !bytes.Equal(once, twice) || len(once) > len(in) {
			t.Errorf("%q became %q and then %q: %v", in, once, twice, err)
		}
	})
}
