// Command protogen generates package ctlpb from ctl.proto.
// It parses the file itself and runs the plugins that go.mod pins, so that no protoc need be installed.
// Run it by `go generate ./internal/ctl`.
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
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// source is the file to generate from, in the directory that go generate runs in.
const source = "ctl.proto"

func main() {
	files, err := generate(context.Background(), ".")
	if err == nil {
		err = write("ctlpb", files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

// generate returns the generated files by base name. dir is where ctl.proto is, inside the module.
func generate(ctx context.Context, dir string) (map[string][]byte, error) {
	req, err := request(ctx, dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := run(ctx, dir, plugin, req, files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// request is what protoc would send a plugin.
func request(ctx context.Context, dir string) ([]byte, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	fds, err := compiler.Compile(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", source, err)
	}
	req := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{source},
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(fds[0])},
		// The version that protoc would give is written into the output's header: a fixed one keeps it stable.
		CompilerVersion: &pluginpb.Version{Major: proto.Int32(1)},
	}
	return proto.Marshal(req)
}

func run(ctx context.Context, dir, plugin string, req []byte, files map[string][]byte) error {
	cmd := exec.CommandContext(ctx, "go", "tool", plugin)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(req)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("cannot run go tool %s: %w\n%s", plugin, err, stderr.Bytes())
	}
	var resp pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &resp); err != nil {
		return fmt.Errorf("cannot read the answer of %s: %w", plugin, err)
	}
	if resp.Error != nil {
		return fmt.Errorf("cannot generate by %s: %s", plugin, resp.GetError())
	}
	for _, f := range resp.File {
		files[filepath.Base(f.GetName())] = []byte(f.GetContent())
	}
	return nil
}

func write(dir string, files map[string][]byte) error {
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("cannot write generated code: %w", err)
		}
	}
	return nil
}
