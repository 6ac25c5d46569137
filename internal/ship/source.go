package ship

import (
	"bytes"
	"context"
	"debug/elf"
	"debug/gosym"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// find looks for the program's source: by the import path of its package, in the working directory's module; else where the program says that
// it was built, unless it was built with -trimpath.
func (b rebuild) find(ctx context.Context) (source, error) {
	if _, err := b.goCommand(); err != nil {
		return source{}, err
	}
	adHoc := b.info.Path == "" || b.info.Path == "command-line-arguments" // go run main.go
	if !adHoc {
		if dir, err := b.list(ctx, b.info.Path); err == nil {
			return source{dir: dir, args: []string{"."}, name: b.info.Path}, nil
		}
	}
	files := mainFiles(b.Path)
	if len(files) == 0 {
		return source{}, fmt.Errorf("the source of package %s is not in the working directory's module, and the program does not say where else", b.fallbackName())
	}
	dir := filepath.Dir(files[0])
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return source{}, fmt.Errorf("its source is no longer in %s", dir)
	}
	s := source{dir: dir, args: []string{"."}, name: dir}
	if adHoc { // the files that were named need not be all of the folder's; those that have no function are not known
		s.args = []string{strings.Join(files, "\x00"), "."}
		s.name = strings.Join(files, " ")
	}
	return s, nil
}

// list returns the folder of a package as the working directory's module has it.
func (b rebuild) list(ctx context.Context, pkg string) (string, error) {
	command, err := b.goCommand()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, command, "list", "-f", "{{.Module.Path}}\n{{.Dir}}", pkg)
	cmd.Dir = b.Dir
	out, err := cmd.Output()
	if err != nil {
		return "", err
	}
	module, dir, _ := strings.Cut(string(bytes.TrimSpace(out)), "\n")
	if module != b.info.Main.Path || dir == "" {
		return "", errors.New("it is another module's")
	}
	return dir, nil
}

// mainFiles returns the files of the program's package main that have functions, if they are still there; nothing if the program does not say.
func mainFiles(path string) []string {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	section, text := f.Section(".gopclntab"), f.Section(".text")
	if section == nil { // of position-independent programs
		section = f.Section(".data.rel.ro.gopclntab")
	}
	if section == nil || text == nil {
		return nil
	}
	data, err := section.Data()
	if err != nil {
		return nil
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return nil
	}
	var files []string
	for i := range table.Funcs {
		fn := &table.Funcs[i]
		if !strings.HasPrefix(fn.Name, "main.") {
			continue
		}
		name, _, _ := table.PCToLine(fn.Entry)
		if filepath.IsAbs(name) && strings.HasSuffix(name, ".go") && !slices.Contains(files, name) {
			if _, err := os.Stat(name); err == nil {
				files = append(files, name)
			}
		}
	}
	slices.Sort(files)
	return slices.DeleteFunc(files, func(name string) bool { return filepath.Dir(name) != filepath.Dir(files[0]) })
}
