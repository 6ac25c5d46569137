package hdfs

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func blockRequest(src, previous string) (b []byte) {
	b = protowire.AppendString(protowire.AppendTag(b, fieldSrc, protowire.BytesType), src)
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), "client")
	if previous != "" {
		b = protowire.AppendString(protowire.AppendTag(b, fieldPrevious, protowire.BytesType), previous)
	}
	return protowire.AppendVarint(protowire.AppendTag(b, 5, protowire.VarintType), 77) // the file's id
}

// TestBlockIsAskedForAgain: what a file's last block is goes into each request after the library has told it once, until the file ends or begins anew.
func TestBlockIsAskedForAgain(t *testing.T) {
	var b blocks
	step := func(what, method, src, previous, want string) {
		t.Helper()
		got := b.edit(method, blockRequest(src, previous))
		if v := string(fieldOf(got, fieldPrevious)); v != want || string(fieldOf(got, fieldSrc)) != src || string(fieldOf(got, 2)) != "client" {
			t.Errorf("%s: the block before %s is %q, want %q", what, src, v, want)
		}
		if want == previous && string(got) != string(blockRequest(src, previous)) {
			t.Errorf("%s: a request that needs nothing was changed", what)
		}
	}
	step("first block", "addBlock", "/a", "", "")
	step("second block", "addBlock", "/a", "one", "one")
	step("third block", "addBlock", "/a", "two", "two")
	step("another file", "addBlock", "/b", "", "")
	step("the same", "getBlockLocations", "/a", "", "")
	step("refused", "addBlock", "/a", "", "two")
	step("refused again", "addBlock", "/a", "", "two")
	step("fourth block", "addBlock", "/a", "three", "three")
	step("whole", "complete", "/a", "", "")
	step("anew", "addBlock", "/a", "", "")
	step("second block", "addBlock", "/a", "x", "x")
	step("gone", "delete", "/a", "", "")
	step("anew", "addBlock", "/a", "", "")
	step("second block", "addBlock", "/a", "y", "y")
	b.forget("/a")
	step("begun anew", "addBlock", "/a", "", "")
	if got := b.edit("addBlock", []byte{0xff}); string(got) != "\xff" {
		t.Errorf("what is no message became %q", got)
	}
}
