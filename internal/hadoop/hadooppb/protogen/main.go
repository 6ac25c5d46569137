// Command protogen generates package hadooppb from its .proto files.
// It parses them itself and runs the plugin that go.mod pins, so that no protoc need be installed.
// Run it by `go generate ./internal/hadoop/hadooppb`.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"
)

// sources are the files to generate from, dependencies first, in the directory that go generate runs in.
var sources = []string{"hadoop_common.proto", "hadoop_yarn.proto"}

func main() {
	files, err := generate(context.Background(), ".")
	for name, data := range files {
		if err == nil {
			err = os.WriteFile(name, data, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

// generate returns the generated files by base name. dir is where the sources are, inside the module.
func generate(ctx context.Context, dir string) (map[string][]byte, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	fds, err := compiler.Compile(ctx, sources...)
	if err != nil {
		return nil, fmt.Errorf("cannot parse %v: %w", sources, err)
	}
	// The version that protoc would give is written into the output's header: a fixed one keeps it stable.
	req := &pluginpb.CodeGeneratorRequest{FileToGenerate: sources, CompilerVersion: &pluginpb.Version{Major: proto.Int32(1)}}
	for _, fd := range fds {
		req.ProtoFile = append(req.ProtoFile, protoutil.ProtoFromFileDescriptor(fd))
	}
	data, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	return run(ctx, dir, "protoc-gen-go", data)
}

func run(ctx context.Context, dir, plugin string, req []byte) (map[string][]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(req)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot run go tool %s: %w\n%s", plugin, err, stderr.Bytes())
	}
	var resp pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &resp); err != nil {
		return nil, fmt.Errorf("cannot read the answer of %s: %w", plugin, err)
	}
	if resp.Error != nil {
		return nil, fmt.Errorf("cannot generate by %s: %s", plugin, resp.GetError())
	}
	files := map[string][]byte{}
	for _, f := range resp.File {
		files[filepath.Base(f.GetName())] = []byte(f.GetContent())
	}
	return files, nil
}
