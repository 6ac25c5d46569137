package hdfs

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// answer is an exception as the library has it.
type answer struct{ class, message string }

func (a answer) Method() string    { return "create" }
func (a answer) Desc() string      { return "" }
func (a answer) Exception() string { return a.class }
func (a answer) Message() string   { return a.message }
func (a answer) Error() string     { return a.message }

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
		{answer{"org.apache.hadoop.hdfs.UnknownCryptoProtocolVersionException", "No crypto protocol versions provided by the client are supported."}, Encoded, "encryption zone"},
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
