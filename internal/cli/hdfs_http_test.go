package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWebPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("hush\r\nmore"), 0o600); err != nil {
		t.Fatal(err)
	}
	const uri = "https://knox/gateway/default/webhdfs/v1"
	for name, x := range map[string]struct {
		set        map[string]string
		want, fail string
	}{
		"none":        {nil, "", ""},
		"file":        {map[string]string{"hdfs.http-uri": uri, "hdfs.http-user": "alice", "hdfs.http-password-file": file}, "hush", ""},
		"no file":     {map[string]string{"hdfs.http-uri": uri, "hdfs.http-user": "alice", "hdfs.http-password-file": file + "x"}, "", "cannot read hdfs.http-password-file"},
		"no user":     {map[string]string{"hdfs.http-uri": uri, "hdfs.http-password-file": file}, "", "no hdfs.http-user"},
		"no password": {map[string]string{"hdfs.http-uri": uri, "hdfs.http-user": "alice"}, "", "needs a password"},
		"no address":  {map[string]string{"hdfs.http-user": "alice", "hdfs.http-password-file": file}, "", "hdfs.http-uri, which is not set"},
	} {
		got, err := webPassword(config(t, x.set))
		if got != x.want || (err == nil) != (x.fail == "") || err != nil && !strings.Contains(err.Error(), x.fail) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	got := overHTTP(config(t, map[string]string{"hdfs.http-uri": "https://a,https://b", "hdfs.http-user": "alice", "hdfs.http-password-file": file}))
	if fmt.Sprint(got) != "map[heddle.hdfs.http-uri:https://a,https://b heddle.hdfs.http-user:alice]" || overHTTP(nil) != nil {
		t.Errorf("got %v", got)
	}
}
