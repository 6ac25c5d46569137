package hdfs

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

func blockRequest(src, last string) (b []byte) {
	b = protowire.AppendString(protowire.AppendTag(b, fieldSrc, protowire.BytesType), src)
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), "client")
	if last != "" {
		b = protowire.AppendString(protowire.AppendTag(b, fieldLast, protowire.BytesType), last)
	}
	return protowire.AppendVarint(protowire.AppendTag(b, 5, protowire.VarintType), 77) // the file's id
}

// TestLastBlockIsToldAgain: what a file's last block is goes into each request after the library has told it once, until the file ends or begins anew.
func TestLastBlockIsToldAgain(t *testing.T) {
	var b blocks
	step := func(what, method, src, last, want string) {
		t.Helper()
		got := b.edit(method, blockRequest(src, last))
		if v := string(fieldOf(got, fieldLast)); v != want || string(fieldOf(got, fieldSrc)) != src || string(fieldOf(got, 2)) != "client" {
			t.Errorf("%s: the last block of %s is %q, want %q", what, src, v, want)
		}
		if want == last && string(got) != string(blockRequest(src, last)) {
			t.Errorf("%s: a request that needs nothing was changed", what)
		}
	}
	step("first block", "addBlock", "/a", "", "")
	step("second block", "addBlock", "/a", "one", "one")
	step("third block", "addBlock", "/a", "two", "two")
	step("another file", "addBlock", "/b", "", "")
	step("another file is whole", "complete", "/b", "", "")
	step("of another kind", "getBlockLocations", "/a", "", "")
	step("refused", "addBlock", "/a", "", "two")
	step("refused again", "addBlock", "/a", "", "two")
	step("fourth block", "addBlock", "/a", "three", "three")
	step("whole", "complete", "/a", "four", "four")
	step("refused", "complete", "/a", "", "four")
	b.forget("/a")
	step("begun anew", "addBlock", "/a", "", "")
	if got := b.edit("addBlock", []byte{0xff}); string(got) != "\xff" {
		t.Errorf("what is no message became %q", got)
	}
}

// unclosed is a file that the NameNode does not take as whole for a while.
type unclosed struct{ left int }

func (u *unclosed) Close() error {
	if u.left--; u.left < 0 {
		return nil
	}
	return &os.PathError{Op: "create", Path: "/x", Err: hdfs.ErrReplicating}
}

// TestCompleteEnds: a file that never becomes whole is given up, and told with what is missing.
func TestCompleteEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := complete(t.Context(), &unclosed{left: 30}); err != nil {
			t.Errorf("after a while: %v", err)
		}
		began := time.Now()
		err := complete(t.Context(), &unclosed{left: 1 << 30})
		if err == nil || !strings.Contains(err.Error(), "DataNode") || errors.Is(err, fs.ErrInvalid) {
			t.Errorf("never: %v", err)
		}
		if d := time.Since(began); d < completeLimit || d > completeLimit+5*time.Second {
			t.Errorf("given up after %v", d)
		}
	})
}
