package identity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/kms"
)

// keyFS is a file system whose NameNode says that its keys are with a provider, or nothing of that if it is "".
func keyFS(t *testing.T, provider string) hconf.FileSystem {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := hrpctest.Serve(l, hrpctest.Config{Simple: true, Handle: func(r *hrpctest.Request) (proto.Message, error) {
		if r.Method != "getServerDefaults" {
			return nil, &hrpc.RemoteError{Class: "java.lang.UnsupportedOperationException", Message: r.Method}
		}
		zero, block := uint32(0), uint64(1)
		return &pb.GetServerDefaultsResponseProto{ServerDefaults: &pb.FsServerDefaultsProto{BlockSize: &block, BytesPerChecksum: &zero, WritePacketSize: &zero, Replication: &zero, FileBufferSize: &zero, KeyProviderUri: &provider}}, nil
	}})
	t.Cleanup(s.Close)
	addr := l.Addr().String()
	return hconf.FileSystem{URI: "hdfs://" + addr, NameNodes: []string{addr}}
}

// keyServer serves tokens, or refuses them.
func keyServer(t *testing.T, refuses bool) (provider string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuses {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"RemoteException":{"exception":"AuthorizationException","message":"alice gets no token"}}`)
			return
		}
		fmt.Fprintf(w, `{"Token":{"urlString":%q}}`, token.Token{Identifier: []byte("id"), Password: []byte("pw"), Kind: kms.TokenKind}.URLString())
	}))
	t.Cleanup(s.Close)
	return "kms://http@" + strings.TrimPrefix(s.URL, "http://") + "/kms"
}

// TestKeyTokens asks every key server for its token: what others refuse does not keep one from being fetched, and is told with whose zones it closes.
func TestKeyTokens(t *testing.T) {
	gives, refuses := keyFS(t, keyServer(t, false)), keyFS(t, keyServer(t, true))
	keeps, same := keyFS(t, "jceks://file/keys"), gives
	i, err := Open(Config{Conf: conf(t), Env: env("USER=alice")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := i.fetchKeyTokens(t.Context(), []hconf.FileSystem{refuses, keeps, gives, same}, "rm")
	lack, ok := errors.AsType[*KeyTokenError](err)
	if len(got) != 1 || got[0].Token.Kind != kms.TokenKind || !ok || fmt.Sprint(lack.Systems) != "["+refuses.URI+"]" {
		t.Fatalf("got %v, %v", got, err)
	}
	for _, want := range []string{"cannot get a delegation token of the key server (kms://http@", "alice gets no token", "can't read or write in encryption zones of " + refuses.URI} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
	if otherThanKeys(fmt.Errorf("so: %w", err)) != nil || otherThanKeys(context.Canceled) == nil {
		t.Error("a key server's refusal is taken for another error, or the other way round")
	}
	if got, err := i.fetchKeyTokens(t.Context(), []hconf.FileSystem{gives, keeps}, "rm"); len(got) != 1 || err != nil {
		t.Errorf("without the one that refuses: %v, %v", got, err)
	}
	gone := keyFS(t, "")
	gone.NameNodes = []string{"127.0.0.1:1"}
	if _, err := i.fetchKeyTokens(t.Context(), []hconf.FileSystem{gone}, "rm"); otherThanKeys(err) == nil {
		t.Errorf("a NameNode that is away: %v", err)
	}
}
