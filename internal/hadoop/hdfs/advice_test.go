package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// answer is an exception as the library has it.
type answer struct{ class, message string }

func (a answer) Method() string    { return "create" }
func (a answer) Desc() string      { return "" }
func (a answer) Exception() string { return a.class }
func (a answer) Message() string   { return a.message }
func (a answer) Error() string     { return "create call failed with ERROR_APPLICATION (" + a.class + ")" } // as the library has it

func TestTrouble(t *testing.T) {
	for _, x := range []struct {
		err    error
		want   Trouble
		advice string
	}{
		{nil, NoTrouble, ""},
		{fs.ErrNotExist, NotFound, "hdfs dfs -ls"},
		{&os.PathError{Op: "open", Path: "/x", Err: os.ErrPermission}, Denied, "user alice needs the right"},
		{answer{"org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Cannot create file/x. Name node is in safe mode."}, SafeMode, "wait until"},
		{answer{"org.apache.hadoop.ipc.RetriableException", "org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create /x. Name node is in safe mode."}, SafeMode, "wait until"},
		{answer{"org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "The DiskSpace quota of /user/alice is exceeded"}, Quota, "-count -q"},
		{answer{"org.apache.hadoop.hdfs.protocol.NSQuotaExceededException", "The NameSpace quota is exceeded"}, Quota, "-count -q"},
		{answer{"java.io.IOException", "File /x could only be written to 0 of the 1 minReplication nodes."}, NoSpace, "-report"},
		{answer{"org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException", "No crypto protocol versions provided by the client are supported."}, Sealed, "encryption zone"},
		{&keyError{"/zone/x", &hrpc.RemoteError{Class: hrpc.ClassAuthorization, Message: "User:alice not allowed to do 'DECRYPT_EEK' on 'k'"}}, Sealed, "lets user alice open keys"},
		{fmt.Errorf("/coded/x: %w", errEncoded), Encoded, "replicated"},
		{&hrpc.RemoteError{Class: hrpc.ClassAccessControl, Message: "Permission denied"}, Denied, "user alice"},
		{&hrpc.ConnError{Addr: "nn:8020", Err: context.DeadlineExceeded}, Unreachable, "fs.defaultFS"},
		{fmt.Errorf("no available namenodes: %w", os.ErrDeadlineExceeded), Unreachable, "fs.defaultFS"},
		{answer{"java.io.IOException", "something else"}, NoTrouble, ""},
	} {
		err := x.err
		if err != nil {
			err = fmt.Errorf("cannot do it: %w", err)
		}
		if got, advice := TroubleOf(err), Advice(err, "alice"); got != x.want || (advice == "") != (x.advice == "") || !strings.Contains(advice, x.advice) {
			t.Errorf("%v: %q, %q; want %q, %q", x.err, got, advice, x.want, x.advice)
		}
	}
}

func TestTold(t *testing.T) {
	err := fmt.Errorf("cannot do it: %w", answer{"java.io.IOException", "File /x could only be written to 0 of the 1 minReplication nodes.\n\tat some.Class"})
	const want = "cannot do it: create call failed with ERROR_APPLICATION (java.io.IOException): File /x could only be written to 0 of the 1 minReplication nodes."
	if got := told(told(err)); got.Error() != want || !errors.Is(got, err) {
		t.Errorf("got %v", got)
	}
	if got := told(fs.ErrExist); got != fs.ErrExist {
		t.Errorf("got %v", got)
	}
}

// late is a file whose next block is refused a few times, in the middle of a write.
type late struct {
	refusals []error
	got      []byte
}

func (l *late) Write(b []byte) (int, error) {
	if len(l.got) < 5 {
		n := min(len(b), 5-len(l.got))
		l.got = append(l.got, b[:n]...)
		b = b[n:]
		if len(b) == 0 {
			return n, nil
		}
		return n, l.refusals[0]
	}
	if l.refusals = l.refusals[1:]; len(l.refusals) > 0 {
		return 0, l.refusals[0]
	}
	l.got = append(l.got, b...)
	return len(b), nil
}

func TestNextBlockIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &os.PathError{Op: "create", Path: "/x", Err: answer{"org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException", "Not replicated yet: /x"}}
		l := &late{refusals: []error{first, first, first}}
		if n, err := writeAll(t.Context(), l, []byte("0123456789")); n != 10 || err != nil || string(l.got) != "0123456789" {
			t.Errorf("wrote %d, %v; the file has %q", n, err, l.got)
		}
		l = &late{refusals: []error{answer{"java.io.IOException", "something else"}}}
		if n, err := writeAll(t.Context(), l, []byte("0123456789")); n != 5 || err == nil {
			t.Errorf("another failure: %d, %v", n, err)
		}
		l = &late{refusals: slices.Repeat([]error{first}, 100)}
		if _, err := writeAll(t.Context(), l, []byte("0123456789")); !errors.Is(err, first) {
			t.Errorf("for ever: %v", err)
		}
	})
}
