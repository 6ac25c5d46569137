package kerberos

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// hdfs opens HDFS as a user.
func (x *cluster) hdfs(t *testing.T, user string, s hdfs.Security, dial func(context.Context, string) (net.Conn, error)) *hdfs.FS {
	t.Helper()
	f, err := hdfs.Open(hdfs.Config{NameNodes: []string{x.h.NameNode}, User: user, Security: s, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// byTicket is a user's proof to NameNodes.
func (x *cluster) byTicket(t *testing.T, user string) []hrpc.Authenticator {
	return []hrpc.Authenticator{hrpc.ByKerberos(x.login(t, user), x.principal(t, "dfs.namenode.kerberos.principal"))}
}

// hdfsToken fetches a delegation token as a user.
func (x *cluster) hdfsToken(t *testing.T, user, renewer string) token.Token {
	t.Helper()
	c, _ := x.rpc(t, clientProtocol, x.h.NameNode, "auth", x.byTicket(t, user)...)
	resp := &hadooppb.GetDelegationTokenResponseProto{}
	if err := c.Call(t.Context(), "getDelegationToken", &hadooppb.GetDelegationTokenRequestProto{Renewer: &renewer}, resp); err != nil {
		t.Fatal(err)
	}
	return token.FromProto(resp.GetToken())
}

// folders makes what users need in HDFS.
func (x *cluster) folders(t *testing.T) {
	t.Helper()
	super := x.hdfs(t, "hdfs", hdfs.Security{Auth: x.byTicket(t, "hdfs"), DataTransfer: []string{"auth"}}, nil)
	for _, dir := range []string{"/tmp", "/app-logs", "/user"} {
		if err := super.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := super.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range users {
		if err := super.MkdirAll("/user/"+u, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := super.Chown("/user/"+u, u, "users"); err != nil {
			t.Fatal(err)
		}
	}
}

// testHDFS writes and reads at every protection, by ticket and by delegation token alone, and looks at the bytes on the wire.
func (x *cluster) testHDFS(t *testing.T) {
	x.folders(t)
	secret := bytes.Repeat([]byte("in clear, if you can read this. "), 10)
	content := make([]byte, 3<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	copy(content, secret)
	tok := x.hdfsToken(t, "alice", "yarn")
	for name, auth := range map[string][]hrpc.Authenticator{"ticket": x.byTicket(t, "alice"), "token": {hrpc.ByToken(tok)}} {
		for _, qop := range []string{"auth", "auth-int", "auth-conf"} {
			t.Run(name+" "+qop, func(t *testing.T) {
				var mu sync.Mutex
				var seen bytes.Buffer
				dial := func(ctx context.Context, addr string) (net.Conn, error) {
					nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
					return tapped{nc, &mu, &seen}, err
				}
				f := x.hdfs(t, "alice", hdfs.Security{Auth: auth, Protection: []string{qop}, DataTransfer: []string{qop}}, dial)
				path := "/user/alice/" + strings.ReplaceAll(t.Name(), "/", "_") + "-path-in-clear"
				info, err := f.Upload(t.Context(), path, 0o600, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, nil)
				if err != nil {
					t.Fatal(err)
				}
				if info.Owner != "alice" || info.Size != int64(len(content)) {
					t.Errorf("HDFS has %+v", info)
				}
				got, err := f.ReadFile(path, 1<<30)
				if err != nil || !bytes.Equal(got, content) {
					t.Fatalf("read %d bytes of %d: %v", len(got), len(content), err)
				}
				if at, err := f.Blocks(t.Context(), path); err != nil || len(at) != 1 || at[0].To != int64(len(content)) || len(at[0].Hosts) != 1 {
					t.Errorf("it is kept at %+v, %v", at, err)
				}
				mu.Lock()
				defer mu.Unlock()
				for what, b := range map[string][]byte{"the path": []byte("-path-in-clear"), "the content": secret} {
					if clear := bytes.Contains(seen.Bytes(), b); clear == (qop == "auth-conf") {
						t.Errorf("%s is on the wire in clear: %v", what, clear)
					}
				}
			})
		}
	}
	t.Run("others", func(t *testing.T) {
		f := x.hdfs(t, "bob", hdfs.Security{Auth: x.byTicket(t, "bob"), DataTransfer: []string{"auth"}}, nil)
		if _, err := f.List("/user/alice"); err == nil {
			t.Error("bob may list alice's folder")
		}
		// Claiming another name helps nobody.
		f = x.hdfs(t, "alice", hdfs.Security{Auth: x.byTicket(t, "bob"), DataTransfer: []string{"auth"}}, nil)
		if _, err := f.List("/user/alice"); err == nil {
			t.Error("bob may list alice's folder as alice")
		}
	})
	t.Run("java", func(t *testing.T) {
		out, err := x.h.Tool("alice", "org.apache.hadoop.fs.FsShell", "-checksum", "/user/alice/TestCluster_hdfs_ticket_auth-conf-path-in-clear", "/user/alice/TestCluster_hdfs_token_auth-int-path-in-clear")
		var sums []string
		for _, l := range strings.Split(out, "\n") {
			if w := strings.Fields(l); len(w) == 3 && strings.Contains(w[1], "CRC32C") {
				sums = append(sums, w[2])
			}
		}
		if err != nil || len(sums) != 2 || sums[0] != sums[1] {
			t.Errorf("Hadoop's checksums are %v (%v)\n%s", sums, err, out)
		}
	})
}
