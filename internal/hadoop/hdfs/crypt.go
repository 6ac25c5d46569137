package hdfs

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"

	"github.com/colinmarc/hdfs/v2"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// KeyServer opens keys of files in encryption zones. Each file has a key of its own, which the NameNode keeps sealed by a version of the zone's key, that only the
// key server knows.
type KeyServer interface {
	Decrypt(ctx context.Context, name, version string, iv, sealed []byte) ([]byte, error)
}

// keyError is a key that can't be had.
type keyError struct {
	path string
	err  error
}

func (e *keyError) Error() string {
	return fmt.Sprintf("%s is in an encryption zone of HDFS: %v", e.path, e.err)
}
func (e *keyError) Unwrap() error { return e.err }

func isKeyError(err error) bool {
	_, ok := errors.AsType[*keyError](err)
	return ok
}

// KeyProvider is what the NameNode says of where keys are kept, "" if nothing.
func (f *FS) KeyProvider(ctx context.Context) (string, error) {
	resp := &pb.GetServerDefaultsResponseProto{}
	if err := f.rpc.Call(ctx, "getServerDefaults", &pb.GetServerDefaultsRequestProto{}, resp); err != nil {
		return "", fmt.Errorf("cannot learn who keeps the keys of HDFS (%s): %w", f.where(), known(err))
	}
	return resp.GetServerDefaults().GetKeyProviderUri(), nil
}

// keyServer finds who opens the keys of a path.
func (f *FS) keyServer(ctx context.Context, name string) (KeyServer, error) {
	f.mu.Lock()
	server := f.keys
	f.mu.Unlock()
	if server != nil {
		return server, nil
	}
	advertised, err := f.KeyProvider(ctx)
	if err == nil && f.cfg.Keys != nil {
		server, err = f.cfg.Keys(advertised)
	}
	if err == nil && server == nil {
		err = errors.New("no key server is known that could open its keys")
	}
	if err != nil {
		return nil, &keyError{name, err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys = server
	return server, nil
}

// seal is how a file in an encryption zone is encrypted: AES in counter mode, so that it can be read from anywhere and is as long as what is in it.
type seal struct {
	block cipher.Block
	iv    [aes.BlockSize]byte
}

// sealed is what the NameNode says of a file in an encryption zone.
type sealed interface {
	GetKey() []byte
	GetIv() []byte
	GetKeyName() string
	GetEzKeyVersionName() string
}

// sealOf has the key of a file opened; nil: it is in no encryption zone.
func (f *FS) sealOf(ctx context.Context, name string, st fs.FileInfo) (*seal, error) {
	h, ok := st.(*hdfs.FileInfo)
	if !ok {
		return nil, nil
	}
	raw, ok := h.Sys().(*hdfs.FileStatus)
	if !ok || raw.GetFileEncryptionInfo() == nil {
		return nil, nil
	}
	info := raw.GetFileEncryptionInfo()
	if suite := pb.CipherSuiteProto(info.GetSuite()); suite != pb.CipherSuiteProto_AES_CTR_NOPADDING {
		return nil, &keyError{name, fmt.Errorf("it is encrypted by %s, which this version can't read or write", info.GetSuite())}
	}
	server, err := f.keyServer(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, server, info)
	if err != nil {
		return nil, &keyError{name, err}
	}
	return s, nil
}

// open has a key opened.
func open(ctx context.Context, server KeyServer, info sealed) (*seal, error) {
	s := &seal{}
	if len(info.GetIv()) != len(s.iv) {
		return nil, fmt.Errorf("its initialization vector has %d bytes", len(info.GetIv()))
	}
	copy(s.iv[:], info.GetIv())
	key, err := server.Decrypt(ctx, info.GetKeyName(), info.GetEzKeyVersionName(), info.GetIv(), info.GetKey())
	if err != nil {
		return nil, err
	}
	s.block, err = aes.NewCipher(key)
	return s, err
}

// at is the cipher from an offset of the file on, both ways; nil of nil.
func (s *seal) at(offset int64) cipher.Stream {
	if s == nil {
		return nil
	}
	hi, lo := binary.BigEndian.Uint64(s.iv[:8]), binary.BigEndian.Uint64(s.iv[8:])
	n := uint64(offset) / aes.BlockSize
	if lo+n < lo {
		hi++
	}
	var iv [aes.BlockSize]byte
	binary.BigEndian.PutUint64(iv[:8], hi)
	binary.BigEndian.PutUint64(iv[8:], lo+n)
	c := cipher.NewCTR(s.block, iv[:])
	var skip [aes.BlockSize]byte
	c.XORKeyStream(skip[:offset%aes.BlockSize], skip[:offset%aes.BlockSize])
	return c
}

// sealedWriter encrypts what is written. A write that breaks off can be gone on with.
type sealedWriter struct {
	w      fileWriter
	seal   *seal
	at     int64
	stream cipher.Stream // for what comes at at; nil: to be made
	buf    []byte
}

// sealedChunk is how much is encrypted at a time.
const sealedChunk = 64 << 10

// Write implements io.Writer.
func (s *sealedWriter) Write(b []byte) (done int, err error) {
	if s.buf == nil {
		s.buf = make([]byte, sealedChunk)
	}
	for len(b) > 0 && err == nil {
		if s.stream == nil {
			s.stream = s.seal.at(s.at)
		}
		c := s.buf[:min(len(b), len(s.buf))]
		s.stream.XORKeyStream(c, b[:len(c)])
		var n int
		if n, err = s.w.Write(c); n < len(c) {
			s.stream = nil
		}
		s.at += int64(n)
		done += n
		b = b[n:]
	}
	return done, err
}

// Flush implements fileWriter.
func (s *sealedWriter) Flush() error { return s.w.Flush() }

// Close implements io.Closer.
func (s *sealedWriter) Close() error { return s.w.Close() }
