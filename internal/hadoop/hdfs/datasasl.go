package hdfs

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/digest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// dataConn is a connection to a DataNode that proves itself and protects what it carries, which whoever reads or writes blocks need not know. The
// proof is made when the first request is written, since that holds the block's token.
type dataConn struct {
	net.Conn
	allowed []string                                   // qualities of protection that will do; empty: any
	key     func() (*pb.DataEncryptionKeyProto, error) // nil: the block's token is the proof

	// Owned by the writer, who comes before the reader.
	first []byte // an unfinished request; nil after the proof
	begun bool

	out func([]byte) error // protects and sends
	in  io.Reader          // what was sent to us, in clear
}

const (
	saslMagic    = "\xde\xad\xbe\xef"
	opChecksum   = 0x55
	maxOp        = 4 << 20
	maxHandshake = 1 << 20
	dataChunk    = 32 << 10 // of a message; servers say that they take 64 KiB
)

// Write implements net.Conn.
func (c *dataConn) Write(b []byte) (int, error) {
	if c.begun {
		return len(b), c.out(b)
	}
	c.first = append(c.first, b...)
	block, whole, err := blockOf(c.first)
	if err != nil {
		return 0, err
	}
	if !whole {
		return len(b), nil
	}
	if err := c.prove(block); err != nil {
		return 0, fmt.Errorf("cannot authenticate to the DataNode %s: %w", c.RemoteAddr(), err)
	}
	c.begun = true
	first := c.first
	c.first = nil
	return len(b), c.out(first)
}

// Read implements net.Conn.
func (c *dataConn) Read(b []byte) (int, error) {
	if !c.begun {
		return 0, errors.New("cannot read from a DataNode that was asked for nothing")
	}
	return c.in.Read(b)
}

// blockOf reads which block a request is about: a version of two bytes, an operation, and a message with its length.
func blockOf(b []byte) (*pb.BaseHeaderProto, bool, error) {
	if len(b) < 4 {
		return nil, false, nil
	}
	size, n := protowire.ConsumeVarint(b[3:])
	if n < 0 && len(b) < 3+10 {
		return nil, false, nil
	}
	if n < 0 || size > maxOp {
		return nil, false, errors.New("cannot read a request to a DataNode: its length is wrong")
	}
	msg := b[3+n:]
	if uint64(len(msg)) < size {
		return nil, false, nil
	}
	raw, err := field1(msg[:size])
	if err != nil {
		return nil, false, err
	}
	if b[2] == opChecksum {
		base := &pb.BaseHeaderProto{}
		err := proto.Unmarshal(raw, base)
		return base, true, err
	}
	h := &pb.ClientOperationHeaderProto{}
	err = proto.Unmarshal(raw, h)
	return h.GetBaseHeader(), true, err
}

// field1 returns the first field of a message, its header.
func field1(b []byte) ([]byte, error) {
	if v := fieldOf(b, 1); v != nil {
		return v, nil
	}
	return nil, errors.New("cannot read a request to a DataNode: it has no header")
}

// secret is by whom and what a DataNode is convinced: the data encryption key, if the cluster encrypts, else the block's token.
func (c *dataConn) secret(block *pb.BaseHeaderProto) (user, password string, err error) {
	b64 := base64.StdEncoding.EncodeToString
	if c.key != nil {
		k, err := c.key()
		if err != nil {
			return "", "", err
		}
		if len(k.GetNonce()) > 0 {
			return fmt.Sprintf("%d %s %s", int32(k.GetKeyId()), k.GetBlockPoolId(), b64(k.GetNonce())), b64(k.GetEncryptionKey()), nil
		}
	}
	t := token.FromProto(block.GetToken())
	if len(t.Identifier) == 0 {
		return "", "", errors.New("the NameNode gave no token for the block; dfs.block.access.token.enable must be true where dfs.data.transfer.protection is set")
	}
	return b64(t.Identifier), b64(t.Password), nil
}

// prove is the handshake of HDFS's data transfer: DIGEST-MD5 in messages of its own.
func (c *dataConn) prove(block *pb.BaseHeaderProto) error {
	user, password, err := c.secret(block)
	if err != nil {
		return err
	}
	hello, err := message(&pb.DataTransferEncryptorMessageProto{Status: pb.DataTransferEncryptorMessageProto_SUCCESS.Enum(), Payload: []byte{}})
	if err != nil {
		return err
	}
	if _, err := c.Conn.Write(append([]byte(saslMagic), hello...)); err != nil {
		return err
	}
	m, err := c.handshake()
	if err != nil {
		return err
	}
	challenge, err := digest.ParseChallenge(m.GetPayload())
	if err != nil {
		return err
	}
	answer, s, err := digest.Respond(challenge, user, password, "hdfs/0", rand.Text(), c.allowed)
	if err != nil {
		return fmt.Errorf("%w (dfs.data.transfer.protection)", err)
	}
	resp := &pb.DataTransferEncryptorMessageProto{Status: pb.DataTransferEncryptorMessageProto_SUCCESS.Enum(), Payload: answer}
	if s.QOP() == digest.AuthConf { // AES is faster than what DIGEST-MD5 has, if the server is set up for it
		resp.CipherOption = []*pb.CipherOptionProto{{Suite: pb.CipherSuiteProto_AES_CTR_NOPADDING.Enum()}}
	}
	b, err := message(resp)
	if err != nil {
		return err
	}
	if _, err := c.Conn.Write(b); err != nil {
		return err
	}
	if m, err = c.handshake(); err != nil {
		return err
	}
	if err := s.Verify(m.GetPayload()); err != nil {
		return err
	}
	return c.protect(s, m.GetCipherOption())
}

// protect sets up what all further bytes pass.
func (c *dataConn) protect(s *digest.Session, options []*pb.CipherOptionProto) error {
	layer, err := s.Layer()
	if err != nil {
		return err
	}
	switch {
	case layer == nil:
		c.in = c.Conn
		c.out = func(b []byte) error { _, err := c.Conn.Write(b); return err }
	case s.QOP() == digest.AuthConf && len(options) > 0:
		return c.protectByAES(layer, options[0])
	default:
		c.in = &unwrapper{r: c.Conn, layer: layer}
		c.out = func(b []byte) error { return writeWrapped(c.Conn, layer, b) }
	}
	return nil
}

// protectByAES takes the keys that the server chose.
func (c *dataConn) protectByAES(layer *digest.Layer, o *pb.CipherOptionProto) error {
	if o.GetSuite() != pb.CipherSuiteProto_AES_CTR_NOPADDING {
		return fmt.Errorf("the server chose the cipher suite %v, which was not offered", o.GetSuite())
	}
	inKey, err := layer.Unwrap(o.GetInKey())
	if err != nil {
		return err
	}
	outKey, err := layer.Unwrap(o.GetOutKey())
	if err != nil {
		return err
	}
	stream := func(key, iv []byte) (cipher.Stream, error) {
		block, err := aes.NewCipher(key)
		if err != nil || len(iv) != aes.BlockSize {
			return nil, errors.New("the server's AES key or its start is of the wrong length")
		}
		return cipher.NewCTR(block, iv), nil
	}
	send, err := stream(inKey, o.GetInIv())
	if err != nil {
		return err
	}
	receive, err := stream(outKey, o.GetOutIv())
	if err != nil {
		return err
	}
	w := &cipher.StreamWriter{S: send, W: c.Conn}
	c.in = &cipher.StreamReader{S: receive, R: c.Conn}
	c.out = func(b []byte) error { _, err := w.Write(b); return err }
	return nil
}

// message writes a message after its length.
func message(m proto.Message) ([]byte, error) {
	b, err := proto.Marshal(m)
	return protowire.AppendBytes(nil, b), err
}

// handshake reads the server's next message. It reads no byte after it.
func (c *dataConn) handshake() (*pb.DataTransferEncryptorMessageProto, error) {
	size, err := binary.ReadUvarint(oneByte{c.Conn})
	if err != nil {
		return nil, err
	}
	if size > maxHandshake {
		return nil, errors.New("its answer is too long: this may be no DataNode")
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(c.Conn, b); err != nil {
		return nil, err
	}
	m := &pb.DataTransferEncryptorMessageProto{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, err
	}
	if m.GetStatus() != pb.DataTransferEncryptorMessageProto_SUCCESS {
		return nil, fmt.Errorf("it refused: %s", m.GetMessage())
	}
	return m, nil
}

// oneByte reads bytes one by one, and no more of them than it is asked for.
type oneByte struct{ r io.Reader }

func (o oneByte) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(o.r, b[:])
	return b[0], err
}

// writeWrapped sends b in messages that a server has room for, each after its length.
func writeWrapped(w io.Writer, l *digest.Layer, b []byte) error {
	var out []byte
	for len(b) > 0 {
		n := min(len(b), dataChunk)
		m := l.Wrap(b[:n])
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(m))), m...)
		b = b[n:]
	}
	_, err := w.Write(out)
	return err
}

// unwrapper reads messages, each after its length, and returns what they protect.
type unwrapper struct {
	r     io.Reader
	layer *digest.Layer
	rest  []byte
	mu    sync.Mutex // one read at a time
}

func (u *unwrapper) Read(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.rest) == 0 {
		var head [4]byte
		if _, err := io.ReadFull(u.r, head[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > maxHandshake {
			return 0, fmt.Errorf("a message of %d bytes from a DataNode is too long", size)
		}
		m := make([]byte, size)
		if _, err := io.ReadFull(u.r, m); err != nil {
			return 0, err
		}
		plain, err := u.layer.Unwrap(m)
		if err != nil {
			return 0, err
		}
		u.rest = plain
	}
	n := copy(b, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}
