package hdfs

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// Security is how a cluster wants to be spoken to. The zero value is one without security.
type Security struct {
	// Auth proves who we are to NameNodes: by Kerberos or a delegation token. Empty: the user's name will do.
	Auth []hrpc.Authenticator
	// Protection lists what will do for the NameNodes' RPC, as SASL names it; empty: any.
	Protection []string
	// DataTransfer lists what will do for connections to DataNodes, as dfs.data.transfer.protection says and SASL names it. Empty: they are not
	// protected, unless the NameNode says that the cluster encrypts.
	DataTransfer []string
}

// learned is what the NameNode says about security.
type learned struct {
	encrypts atomic.Bool // data is encrypted on the wire
}

// auths are the proofs that there are.
func (c *Config) auths() []hrpc.Authenticator {
	if len(c.Security.Auth) > 0 {
		return c.Security.Auth
	}
	return []hrpc.Authenticator{hrpc.Simple(c.User)}
}

// dialNameNode connects for the library, which knows no security, and puts it into a tunnel where there is any.
func (f *FS) dialNameNode(ctx context.Context, _, addr string) (net.Conn, error) {
	nc, err := f.cfg.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	t := &timed{Conn: nc, timeout: f.cfg.Timeout}
	if len(f.cfg.Security.Auth) == 0 {
		return hrpc.EditRequests(t, f.blocks.edit), nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(f.cfg.Timeout, 20*time.Second))
	defer cancel()
	tunnel, err := hrpc.Tunnel(ctx, t, hrpc.TunnelConfig{Addr: addr, Protocol: protocol, Auth: f.cfg.Security.Auth, Protection: f.cfg.Security.Protection, Edit: f.edit})
	if err != nil {
		nc.Close()
		return nil, err
	}
	return hrpc.EditRequests(tunnel, f.blocks.edit), nil
}

// fieldEncrypt is encryptDataTransfer of FsServerDefaultsProto.
const fieldEncrypt = 6

// edit takes note that the cluster encrypts data, and hides it from the library: it would encrypt by itself, and cannot read then.
func (f *FS) edit(method string, answer []byte) []byte {
	if method != "getServerDefaults" {
		return answer
	}
	defaults, err := field1(answer)
	if err != nil {
		return answer
	}
	var out []byte
	for b := defaults; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return answer
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return answer
		}
		if num == fieldEncrypt && typ == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(b[n:])
			f.sec.encrypts.Store(v != 0)
		} else {
			out = append(out, b[:n+size]...)
		}
		b = b[n+size:]
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), out)
}

// privilegedPort is below which a DataNode's port proves by itself that root started it. Hadoop does no handshake there.
const privilegedPort = 1024

// dialDataNode connects to a DataNode.
func (f *FS) dialDataNode(ctx context.Context, _, addr string) (net.Conn, error) {
	nc, err := f.cfg.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	t := &timed{Conn: nc, timeout: f.cfg.Timeout}
	s := &f.cfg.Security
	switch a, tcp := nc.RemoteAddr().(*net.TCPAddr); {
	case f.sec.encrypts.Load():
		return &dataConn{Conn: t, key: f.dataKey, allowed: s.DataTransfer}, nil
	case len(s.Auth) == 0 || len(s.DataTransfer) == 0 || tcp && a.Port < privilegedPort:
		return t, nil
	}
	return &dataConn{Conn: t, allowed: slices.Clone(s.DataTransfer)}, nil
}

// dataKey asks the NameNode for a key to encrypt data by.
func (f *FS) dataKey() (*pb.DataEncryptionKeyProto, error) {
	ctx, cancel := context.WithTimeout(context.Background(), f.cfg.Timeout)
	defer cancel()
	resp := &pb.GetDataEncryptionKeyResponseProto{}
	if err := f.rpc.Call(ctx, "getDataEncryptionKey", &pb.GetDataEncryptionKeyRequestProto{}, resp); err != nil {
		return nil, err
	}
	return resp.GetDataEncryptionKey(), nil
}
