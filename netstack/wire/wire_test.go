package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

const maxData = 32744

func nonce(b byte) (n [NonceSize]byte) {
	for i := range n {
		n[i] = b
	}
	return n
}

// frames holds one of each kind, with its golden bytes.
var frames = []struct {
	name   string
	frame  []byte
	golden string
}{
	{"data header", AppendHeader(nil, Header{Type: Data, Length: 0x7fe8, Channel: 3, Seq: 9, Backlog: 2}),
		"HL\x0c\x00\xe8\x7f\x00\x00\x03\x00\x00\x00\x09\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"},
	{"event", append(AppendHeader(nil, Header{Type: Event, Flags: FlagPriority | FlagEnd, Length: 2, Channel: 1, Seq: 0xffffffff}), "ab"...),
		"HL\x0d\x05\x02\x00\x00\x00\x01\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00ab"},
	{"request", AppendRequest(nil, 7, PartitionRequest{Subpartition: 1, Credit: 2, Partition: "p-1"}),
		"HL\x08\x00\x0d\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00p-1"},
	{"credit", AppendCredit(nil, []Grant{{1, 16}, {0x01020304, 1}}),
		"HL\x09\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x01\x00\x00\x00\x10\x00\x00\x00\x04\x03\x02\x01\x01\x00\x00\x00"},
	{"error", AppendError(nil, 5, Fault{Code: NotFound, Kind: 3, Message: "no p"}),
		"HL\x0f\x00\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x03\x04\x00no p"},
	{"resize", AppendResize(nil, 6, 2048), "HL\x12\x00\x04\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00"},
	{"trace", AppendTrace(nil, 6, 9, Traced{Put: 1, Credited: 2, Written: 0x0102030405060708, Note: []byte("note")}),
		"HL\x13\x00\x1c\x00\x00\x00\x06\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x08\x07\x06\x05\x04\x03\x02\x01note"},
	{"question", AppendClock(nil, Clock{Asked: 5}),
		"HL\x10\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00"},
	{"answer", AppendClock(nil, Clock{Asked: 5, Heard: 6, Answered: 7, Answer: true}),
		"HL\x10\x00\x18\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x05\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00"},
	{"greeting", AppendGreeting(nil, Greeting{MinVersion: 1, MaxVersion: 2, Features: 3, MaxData: maxData, Nonce: nonce('n'), Identity: "a-1"}),
		"\x01\x00\x02\x00\x03\x00\x00\x00\xe8\x7f\x00\x00" + strings.Repeat("n", 32) + "\x03\x00a-1"},
}

func TestGolden(t *testing.T) {
	for _, f := range frames {
		if string(f.frame) != f.golden {
			t.Errorf("%s: wrote\n%q, want\n%q", f.name, f.frame, f.golden)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	h := Header{Type: Event, Flags: FlagCoalesce, Length: 12, Channel: 1 << 31, Seq: 77, Backlog: 5}
	if got, err := ParseHeader(AppendHeader(nil, h), maxData); err != nil || got != h {
		t.Errorf("header: got %+v, %v, want %+v", got, err, h)
	}
	r := PartitionRequest{Subpartition: 9, Credit: 4, Partition: strings.Repeat("x", MaxPartition)}
	if got, err := ParseRequest(AppendRequest(nil, 1, r)[HeaderSize:]); err != nil || got != r {
		t.Errorf("request: got %+v, %v, want %+v", got, err, r)
	}
	f := Fault{Code: Gone, Kind: 7, Message: "gone"}
	if got, err := ParseError(AppendError(nil, 1, f)[HeaderSize:]); err != nil || got != f {
		t.Errorf("error: got %+v, %v, want %+v", got, err, f)
	}
	g := Greeting{MinVersion: 1, MaxVersion: 3, MaxData: 9, Nonce: nonce(7), Identity: strings.Repeat("i", MaxIdentity)}
	b := AppendGreeting(nil, g)
	if got, n, err := ParseGreeting(append(b, "later"...)); err != nil || got != g || n != len(b) {
		t.Errorf("greeting: got %+v, %d, %v, want %+v, %d", got, n, err, g, len(b))
	}
	tr := Traced{Put: -1, Credited: 2, Written: 3, Note: []byte(strings.Repeat("n", MaxNote))}
	if got, err := ParseTrace(AppendTrace(nil, 1, 2, tr)[HeaderSize:]); err != nil || got.Put != -1 || got.Credited != 2 || got.Written != 3 || string(got.Note) != string(tr.Note) {
		t.Errorf("trace: got %+v, %v, want %+v", got, err, tr)
	}
	for _, c := range []Clock{{Asked: -4}, {Asked: 1, Heard: 2, Answered: -3, Answer: true}} {
		if got, err := ParseClock(AppendClock(nil, c)[HeaderSize:]); err != nil || got != c {
			t.Errorf("clock: got %+v, %v, want %+v", got, err, c)
		}
	}
	rest := AppendCredit(nil, []Grant{{1, 2}, {3, 4}})[HeaderSize:]
	for _, want := range []Grant{{1, 2}, {3, 4}} {
		var got Grant
		var err error
		if got, rest, err = ParseGrant(rest); err != nil || got != want {
			t.Errorf("grant: got %+v, %v, want %+v", got, err, want)
		}
	}
}

// parse parses a whole frame, or a greeting.
func parse(name string, b []byte) error {
	if name == "greeting" {
		_, _, err := ParseGreeting(b)
		return err
	}
	h, err := ParseHeader(b, maxData)
	if err != nil {
		return err
	}
	payload := b[HeaderSize:]
	if h.Type != Data && len(payload) < int(h.Length) {
		return ErrShort
	}
	switch h.Type {
	case Request:
		_, err = ParseRequest(payload)
	case Resize:
		_, err = ParseResize(payload)
	case Trace:
		_, err = ParseTrace(payload)
	case Keepalive:
		_, err = ParseClock(payload)
	case Error:
		_, err = ParseError(payload)
	case Credit:
		for len(payload) > 0 && err == nil {
			_, payload, err = ParseGrant(payload)
		}
	}
	return err
}

func TestEveryPrefixFails(t *testing.T) {
	for _, f := range frames {
		if err := parse(f.name, f.frame); err != nil {
			t.Errorf("%s: whole frame: %v", f.name, err)
		}
		for n := range f.frame {
			if err := parse(f.name, f.frame[:n]); err == nil {
				t.Errorf("%s cut to %d of %d bytes was accepted", f.name, n, len(f.frame))
			}
		}
	}
	request, fault, trace := frames[2].frame[HeaderSize:], frames[4].frame[HeaderSize:], frames[6].frame[HeaderSize:]
	for n := range traceFixed {
		if _, err := ParseTrace(trace[:n]); err == nil {
			t.Errorf("trace payload cut to %d bytes was accepted", n)
		}
	}
	for n := range request {
		if _, err := ParseRequest(request[:n]); err == nil {
			t.Errorf("request payload cut to %d bytes was accepted", n)
		}
	}
	for n := range fault {
		if _, err := ParseError(fault[:n]); err == nil {
			t.Errorf("error payload cut to %d bytes was accepted", n)
		}
	}
}

func TestSums(t *testing.T) {
	all := append(AppendCredit(nil, []Grant{{1, 2}}), AppendRequest(nil, 3, PartitionRequest{Partition: "p"})...)
	all = append(AppendHeader(all, Header{Type: Event, Length: 3, Channel: 9}), "abc"...)
	PutSums(all)
	check := func(b []byte) (n int, err error) {
		h, err := ParseHeader(b, maxData)
		if err != nil {
			return 0, err
		}
		if n = HeaderSize + int(h.Length); n > len(b) {
			return 0, ErrShort
		}
		s := NewSum(h)
		s.Add(b[HeaderSize : HeaderSize+h.Length/2])
		s.Add(b[HeaderSize+h.Length/2 : n])
		return n, s.Check(h)
	}
	frames := 0
	for rest := all; len(rest) > 0; frames++ {
		n, err := check(rest)
		if err != nil {
			t.Fatalf("frame %d: %v", frames, err)
		}
		for bit := range 8 * n {
			rest[bit/8] ^= 1 << (bit % 8)
			if _, err := check(rest); err == nil {
				t.Errorf("frame %d: bit %d was altered unnoticed", frames, bit)
			}
			rest[bit/8] ^= 1 << (bit % 8)
		}
		rest = rest[n:]
	}
	if frames != 3 {
		t.Errorf("%d frames, want 3", frames)
	}
	if string(all[len(all)-7:]) != "\x01\xdak\xb0abc" {
		t.Errorf("golden checksum: got %q", all[len(all)-7:])
	}
}

func header(edit func(b []byte)) []byte {
	b := AppendHeader(nil, Header{Type: Data, Length: 8, Channel: 1})
	edit(b)
	return b
}

func TestInvalid(t *testing.T) {
	length := func(n uint32) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[4:], n) }
	}
	control := func(typ Type, flags uint8, n uint32) []byte {
		return AppendHeader(nil, Header{Type: typ, Flags: flags, Length: n})
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"http", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ErrMagic},
		{"zeros", make([]byte, HeaderSize), ErrMagic},
		{"data longer than agreed", header(length(maxData + 1)), ErrLength},
		{"data of 4 GiB", header(length(1<<32 - 1)), ErrLength},
		{"empty data", header(length(0)), ErrLength},
		{"data with flags", header(func(b []byte) { b[3] = 1 }), ErrFlags},
		{"data compressed twice", header(func(b []byte) { b[3] = FlagLZ4 | FlagZstd }), ErrLength},
		{"event with unknown flags", control(Event, 0x80, 0), ErrFlags},
		{"credit with flags", control(Credit, 1, 8), ErrFlags},
		{"event too long", control(Event, 0, MaxControl+1), ErrLength},
		{"hello too long", control(Hello, 0, MaxHandshake+1), ErrLength},
		{"unknown type too long", control(200, 0, MaxControl+1), ErrLength},
	} {
		if _, err := ParseHeader(c.b, maxData); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if h, err := ParseHeader(control(200, 0xff, 10), maxData); err != nil || h.Type.Known() {
		t.Errorf("frame of an unknown type: got %+v, %v; want to be told its length, to skip it", h, err)
	}
	bad := map[string]error{}
	_, bad["request with trailing bytes"] = ParseRequest(append(bytes.Clone(frames[2].frame[HeaderSize:]), 0))
	_, bad["request without id"] = ParseRequest(make([]byte, 10))
	_, bad["error with trailing bytes"] = ParseError(append(bytes.Clone(frames[4].frame[HeaderSize:]), 0))
	_, bad["note too long"] = ParseTrace(make([]byte, traceFixed+MaxNote+1))
	_, _, bad["grant of nothing"] = ParseGrant([]byte{1, 0, 0, 0, 0, 0, 0, 0})
	_, _, bad["grant to the connection"] = ParseGrant([]byte{0, 0, 0, 0, 1, 0, 0, 0})
	_, _, bad["greeting with versions reversed"] = ParseGreeting(AppendGreeting(nil, Greeting{MinVersion: 2, MaxVersion: 1}))
	for name, err := range bad {
		if !errors.Is(err, ErrFrame) {
			t.Errorf("%s: got %v, want %v", name, err, ErrFrame)
		}
	}
}

func TestErrorFrameIsBounded(t *testing.T) {
	long := Fault{Code: Failed, Message: strings.Repeat("m", 1<<16)}
	if n := len(AppendError(nil, 1, long)); n > HeaderSize+MaxControl {
		t.Errorf("a channel's error takes %d bytes", n)
	}
	if n := len(AppendError(nil, 0, long)); n > HeaderSize+MaxHandshake {
		t.Errorf("the connection's error takes %d bytes: it must fit a handshake", n)
	}
}

func FuzzHeader(f *testing.F) {
	for _, fr := range frames {
		f.Add(fr.frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b, maxData)
		if err != nil {
			return
		}
		if h.Length > maxData {
			t.Fatalf("accepted %d bytes", h.Length)
		}
		if again, err := ParseHeader(AppendHeader(nil, h), maxData); err != nil || again != h {
			t.Fatalf("%+v came back as %+v, %v", h, again, err)
		}
	})
}

func FuzzPayloads(f *testing.F) {
	for _, fr := range frames[2:5] {
		f.Add(fr.frame[HeaderSize:])
	}
	f.Add(frames[6].frame[HeaderSize:])
	f.Add(frames[8].frame[HeaderSize:])
	f.Add(frames[9].frame)
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := ParseRequest(b); err == nil && !bytes.Equal(AppendRequest(nil, 0, r)[HeaderSize:], b) {
			t.Fatalf("request %+v does not come back", r)
		}
		if e, err := ParseError(b); err == nil && !bytes.Equal(AppendError(nil, 1, e)[HeaderSize:], b) {
			t.Fatalf("error %+v does not come back", e)
		}
		if tr, err := ParseTrace(b); err == nil && !bytes.Equal(AppendTrace(nil, 1, 2, tr)[HeaderSize:], b) {
			t.Fatalf("trace %+v does not come back", tr)
		}
		if c, err := ParseClock(b); err == nil && !bytes.HasPrefix(b, AppendClock(nil, c)[HeaderSize:]) {
			t.Fatalf("clock %+v does not come back", c)
		}
		if g, n, err := ParseGreeting(b); err == nil && !bytes.Equal(AppendGreeting(nil, g), b[:n]) {
			t.Fatalf("greeting %+v does not come back", g)
		}
		if g, rest, err := ParseGrant(b); err == nil && len(rest) != len(b)-GrantSize {
			t.Fatalf("grant %+v left %d of %d bytes", g, len(rest), len(b))
		}
	})
}
