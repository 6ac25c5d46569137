package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/colinmarc/hdfs/v2"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// Trouble is a kind of failure that people can do something about.
type Trouble string

// Kinds of trouble.
const (
	NoTrouble   Trouble = ""            // none, or none of the others
	NotFound    Trouble = "not found"   // no such path
	Denied      Trouble = "denied"      // no permission
	SafeMode    Trouble = "safe mode"   // the NameNode takes no changes for now
	Quota       Trouble = "quota"       // a folder's quota is used up
	NoSpace     Trouble = "no space"    // no DataNode takes a block
	Encoded     Trouble = "encoded"     // erasure-coded: cannot be read here
	Sealed      Trouble = "sealed"      // in an encryption zone whose keys can't be opened from here
	Unreachable Trouble = "unreachable" // no NameNode or DataNode answers
)

// errEncoded is of files that this package can't read.
var errEncoded = errors.New("this version can't read such files")

// TroubleOf judges an error of this package.
func TroubleOf(err error) Trouble {
	if p, ok := errors.AsType[*placeError](err); ok {
		return p.kind
	}
	class, text := classOf(err), ""
	if err != nil {
		text = err.Error() + " " + said(err)
	}
	switch {
	case err == nil:
		return NoTrouble
	case isKeyError(err), strings.HasSuffix(class, ".UnknownCryptoProtocolVersionException"):
		return Sealed
	case errors.Is(err, errEncoded):
		return Encoded
	case strings.HasSuffix(class, ".SafeModeException"), strings.Contains(text, "Name node is in safe mode"):
		return SafeMode
	case strings.HasSuffix(class, "QuotaExceededException"), strings.HasSuffix(class, "QuotaByStorageTypeExceededException"):
		return Quota
	case strings.Contains(text, "could only be written to 0 of"), strings.Contains(text, "could only be replicated to 0 nodes"):
		return NoSpace
	case errors.Is(err, fs.ErrPermission), strings.HasSuffix(class, ".AccessControlException"):
		return Denied
	case errors.Is(err, fs.ErrNotExist), strings.HasSuffix(class, ".FileNotFoundException"), strings.HasSuffix(class, ".PathNotFoundException"):
		return NotFound
	case class != "":
		return NoTrouble
	case strings.Contains(text, "no available namenodes"), errors.Is(err, os.ErrDeadlineExceeded):
		return Unreachable
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return Unreachable
	}
	if _, ok := errors.AsType[*hrpc.ConnError](err); ok {
		return Unreachable
	}
	return NoTrouble
}

// classOf returns the Java class of an answer of HDFS's, "" if an error is none.
func classOf(err error) string {
	if class := hrpc.ClassOf(err); class != "" {
		return class
	}
	var answer hdfs.Error
	if errors.As(err, &answer) {
		return answer.Exception()
	}
	return ""
}

// said is the first line of what HDFS said with an exception, "" if it said nothing or there is none. The library's errors do not have it.
func said(err error) string {
	var answer hdfs.Error
	if !errors.As(err, &answer) {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(answer.Message()), "\n")
	return line
}

// told is an error with what HDFS said.
func told(err error) error {
	if text := said(err); text != "" && !strings.Contains(err.Error(), text) {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// Advice is what a person can do about an error, "" if that is not known. User is who we are to HDFS.
func Advice(err error, user string) string {
	if errors.Is(err, context.Canceled) {
		return ""
	}
	switch TroubleOf(err) {
	case NotFound:
		return "look for it with hdfs dfs -ls"
	case Denied:
		return fmt.Sprintf("user %s needs the right for it: ask the owner of the path (hdfs dfs -ls, -chmod, -setfacl, or a policy of Ranger's)", user)
	case SafeMode:
		return "the NameNode is in safe mode, as after a restart, and takes no changes: wait until it has left it (hdfs dfsadmin -safemode get), or ask its administrator"
	case Quota:
		return "a quota of HDFS is used up: remove files, have it raised (hdfs dfs -count -q -v shows it), or use another folder"
	case NoSpace:
		return "no DataNode took the block: none is alive or reachable from here, or their disks are full (hdfs dfsadmin -report)"
	case Encoded:
		return "use files that are replicated (hdfs ec -getPolicy -path …)"
	case Sealed:
		return fmt.Sprintf("see that hadoop.security.key.provider.path names the key server (KMS), that it can be reached from here, and that it lets user %s open keys (DECRYPT_EEK in kms-acls.xml, or a policy of Ranger's); or use a path outside of the encryption zone (hdfs crypto -listZones)", user)
	case Unreachable:
		return "check fs.defaultFS and the NameNode's address in Hadoop's configuration, that it runs, and that its ports and those of the DataNodes can be reached from here"
	}
	return ""
}
