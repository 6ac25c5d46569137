package hdfs

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/digest"
)

// request is a read request as the library writes it.
func request(t testing.TB, op byte, tok *pb.TokenProto) []byte {
	t.Helper()
	pool, id, name := "BP-1", uint64(7), "client"
	base := &pb.BaseHeaderProto{Block: &pb.ExtendedBlockProto{PoolId: &pool, BlockId: &id, GenerationStamp: &id}, Token: tok}
	raw, err := proto.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	if op != opChecksum {
		if raw, err = proto.Marshal(&pb.ClientOperationHeaderProto{BaseHeader: base, ClientName: &name}); err != nil {
			t.Fatal(err)
		}
	}
	msg := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), raw)
	msg = protowire.AppendVarint(protowire.AppendTag(msg, 2, protowire.VarintType), 0)
	return append([]byte{0, 28, op}, protowire.AppendBytes(nil, msg)...)
}

func blockToken() *pb.TokenProto {
	kind, service := "HDFS_BLOCK_TOKEN", ""
	return &pb.TokenProto{Identifier: []byte("block"), Password: []byte("secret"), Kind: &kind, Service: &service}
}

// dataNode is a DataNode's side of a connection.
type dataNode struct {
	t        *testing.T
	c        net.Conn
	qop      string
	aes      bool
	password map[string]string // by user, both as the client says them
}

// serve makes the handshake and then sends back what it reads, until the end.
func (d *dataNode) serve() error {
	defer d.c.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(d.c, magic); err != nil || string(magic) != saslMagic {
		return errors.New("no magic")
	}
	peer := &dataConn{Conn: d.c}
	if _, err := peer.handshake(); err != nil {
		return err
	}
	ch := digest.Challenge{Realm: "0", Nonce: "nonce", QOP: []string{d.qop}, Ciphers: []string{"3des", "rc4"}}
	if err := d.say(&pb.DataTransferEncryptorMessageProto{Payload: ch.Append(nil)}); err != nil {
		return err
	}
	m, err := peer.handshake()
	if err != nil {
		return err
	}
	_, proof, s, err := digest.Accept(ch, m.GetPayload(), "hdfs/0", func(u string) (string, bool) { p, ok := d.password[u]; return p, ok })
	if err != nil {
		text := err.Error()
		return errors.Join(err, d.say(&pb.DataTransferEncryptorMessageProto{Status: pb.DataTransferEncryptorMessageProto_ERROR.Enum(), Message: &text}))
	}
	layer, err := s.Layer()
	if err != nil {
		return err
	}
	answer := &pb.DataTransferEncryptorMessageProto{Payload: proof}
	var in io.Reader = d.c
	out := func(b []byte) error { _, err := d.c.Write(b); return err }
	switch {
	case layer == nil:
	case d.aes && len(m.GetCipherOption()) > 0:
		key, iv := bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 16)
		answer.CipherOption = []*pb.CipherOptionProto{{Suite: pb.CipherSuiteProto_AES_CTR_NOPADDING.Enum(), InKey: layer.Wrap(key), InIv: iv, OutKey: layer.Wrap(key), OutIv: iv}}
		block, err := aes.NewCipher(key)
		if err != nil {
			return err
		}
		in = &cipher.StreamReader{S: cipher.NewCTR(block, iv), R: d.c}
		w := &cipher.StreamWriter{S: cipher.NewCTR(block, iv), W: d.c}
		out = func(b []byte) error { _, err := w.Write(b); return err }
	default:
		in = &unwrapper{r: d.c, layer: layer}
		out = func(b []byte) error { return writeWrapped(d.c, layer, b) }
	}
	if err := d.say(answer); err != nil {
		return err
	}
	buf := make([]byte, 100<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if err := out(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF || errors.Is(err, io.ErrClosedPipe) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (d *dataNode) say(m *pb.DataTransferEncryptorMessageProto) error {
	if m.Status == nil {
		m.Status = pb.DataTransferEncryptorMessageProto_SUCCESS.Enum()
	}
	b, err := message(m)
	if err != nil {
		return err
	}
	_, err = d.c.Write(b)
	return err
}

func TestDataConn(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString
	byToken := map[string]string{b64([]byte("block")): b64([]byte("secret"))}
	byKey := map[string]string{"-2 BP-1 " + b64([]byte("nonce")): b64([]byte("key"))}
	id, pool, zero := uint32(0xfffffffe), "BP-1", uint64(0)
	key := func() (*pb.DataEncryptionKeyProto, error) {
		return &pb.DataEncryptionKeyProto{KeyId: &id, BlockPoolId: &pool, Nonce: []byte("nonce"), EncryptionKey: []byte("key"), ExpiryDate: &zero}, nil
	}
	for name, x := range map[string]struct {
		node    dataNode
		allowed []string
		key     func() (*pb.DataEncryptionKeyProto, error)
		op      byte
		want    string
	}{
		"auth":           {node: dataNode{qop: "auth", password: byToken}, op: 0x51},
		"integrity":      {node: dataNode{qop: "auth-int", password: byToken}, op: 0x50},
		"privacy":        {node: dataNode{qop: "auth-conf", password: byToken}, op: 0x51},
		"privacy by AES": {node: dataNode{qop: "auth-conf", aes: true, password: byToken}, op: opChecksum},
		"encryption":     {node: dataNode{qop: "auth-conf", aes: true, password: byKey}, key: key, op: 0x51},
		"weaker":         {node: dataNode{qop: "auth", password: byToken}, allowed: []string{"auth-conf"}, op: 0x51, want: "dfs.data.transfer.protection"},
		"wrong token":    {node: dataNode{qop: "auth", password: map[string]string{b64([]byte("block")): "other"}}, op: 0x51, want: "mismatched response"},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := net.Pipe()
			x.node.t, x.node.c = t, server
			ended := make(chan error, 1)
			go func() { ended <- x.node.serve() }()
			c := &dataConn{Conn: client, allowed: x.allowed, key: x.key}
			if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			req := request(t, x.op, blockToken())
			var err error
			for _, part := range [][]byte{req[:2], req[2:9], req[9:]} { // in pieces
				if _, err = c.Write(part); err != nil {
					break
				}
			}
			if x.want != "" {
				if err == nil || !strings.Contains(err.Error(), x.want) {
					t.Errorf("%v, want %q in it", err, x.want)
				}
				client.Close()
				<-ended
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data := append(bytes.Clone(req), bytes.Repeat([]byte("data"), 50000)...)
			go func() { _, _ = c.Write(data[len(req):]) }()
			got := make([]byte, len(data))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) {
				t.Errorf("what came back is not what was sent: %v", err)
			}
			client.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	c := &dataConn{Conn: nil}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that was asked for nothing is read")
	}
	if _, _, err := c.secret(&pb.BaseHeaderProto{}); err == nil || !strings.Contains(err.Error(), "dfs.block.access.token.enable") {
		t.Errorf("without a token: %v", err)
	}
}

func TestServerDefaults(t *testing.T) {
	defaults := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 128<<20)
	defaults = protowire.AppendVarint(protowire.AppendTag(defaults, fieldEncrypt, protowire.VarintType), 1)
	defaults = protowire.AppendVarint(protowire.AppendTag(defaults, 7, protowire.VarintType), 3)
	answer := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), defaults)
	f := &FS{}
	got := f.edit("getServerDefaults", answer)
	want := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 128<<20)
	want = protowire.AppendVarint(protowire.AppendTag(want, 7, protowire.VarintType), 3)
	if !f.sec.encrypts.Load() || !bytes.Equal(got, protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), want)) {
		t.Errorf("encrypts: %v, the answer became %x", f.sec.encrypts.Load(), got)
	}
	if got := f.edit("getListing", answer); !bytes.Equal(got, answer) {
		t.Error("another answer is changed")
	}
}

func FuzzDataNode(f *testing.F) {
	f.Add(request(f, 0x51, blockToken()), []byte{2, 8, 0})
	f.Add([]byte{0, 28, opChecksum, 2, 10, 0}, binary.AppendUvarint(nil, 1<<40))
	f.Fuzz(func(t *testing.T, req, answer []byte) {
		block, whole, err := blockOf(req)
		if err == nil && whole && block != nil {
			_ = block.GetBlock().GetPoolId()
		}
		c := &dataConn{Conn: readOnly{bytes.NewReader(answer)}}
		_, _ = c.handshake()
	})
}

// readOnly is a connection that is read.
type readOnly struct{ io.Reader }

func (readOnly) Write(b []byte) (int, error)      { return len(b), nil }
func (readOnly) Close() error                     { return nil }
func (readOnly) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (readOnly) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (readOnly) SetDeadline(time.Time) error      { return nil }
func (readOnly) SetReadDeadline(time.Time) error  { return nil }
func (readOnly) SetWriteDeadline(time.Time) error { return nil }

// FuzzDefaults: whatever a NameNode says its defaults are, the library does not hear of encryption.
func FuzzDefaults(f *testing.F) {
	f.Add(protowire.AppendBytes([]byte{0x0a}, []byte{0x08, 1, 0x30, 1}))
	f.Fuzz(func(t *testing.T, answer []byte) {
		fs := &FS{}
		out := fs.edit("getServerDefaults", answer)
		if len(out) > len(answer)+16 {
			t.Errorf("%x becomes %x", answer, out)
		}
		if again := fs.edit("getServerDefaults", bytes.Clone(out)); !bytes.Equal(again, out) {
			t.Errorf("%x becomes %x, and that %x", answer, out, again)
		}
	})
}
