package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent compares the code checked in with what the .proto files give now.
func TestCurrent(t *testing.T) {
	for _, c := range []struct {
		dir, out         string
		plugins, sources []string
		files            int
	}{
		{"../ctl", "../ctl/ctlpb", []string{"protoc-gen-go", "protoc-gen-go-grpc"}, []string{"ctl.proto"}, 2},
		{"../hadoop/hadooppb", "../hadoop/hadooppb", []string{"protoc-gen-go"}, []string{"hadoop_common.proto", "hadoop_yarn.proto"}, 2},
	} {
		files, err := generate(t.Context(), c.dir, c.plugins, c.sources)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != c.files {
			t.Fatalf("generated %d files of %v, want %d", len(files), c.sources, c.files)
		}
		for name, want := range files {
			got, err := os.ReadFile(filepath.Join(c.out, name))
			if err != nil {
				t.Error(err)
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s is not what %v give: run go generate in %s", name, c.sources, c.dir)
			}
		}
	}
}
