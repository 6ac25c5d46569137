package ship

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// Pick says which program is to be sent.
type Pick struct {
	Path     string       // the program, as os.Executable names it
	Platform Platform     // the cluster's
	Dir      string       // the working directory, where the program's source is looked for; "": the process's
	Go       string       // the go command; "": go in PATH
	Temp     string       // where to build; "": the system's folder for temporary files
	Log      func(string) // told what takes a while; may be nil
}

// PickExecutable returns a program that can run on the cluster: the one there is, if it is static and for the cluster's platform. Else it is built
// anew so, with the settings of the one there is, if the go command and the source are at hand; if not, the error has
// the command to run. The caller closes what it gets.
func PickExecutable(ctx context.Context, p Pick) (*Executable, error) {
	f, err := inspect(p.Path)
	if err != nil {
		return nil, err
	}
	why := f.unfit(p.Platform)
	if why == "" {
		return hashed(p.Path)
	}
	info, err := buildinfo.ReadFile(p.Path)
	if err != nil {
		return nil, fmt.Errorf("cannot send %s to the cluster: %s, and it is no program in Go", p.Path, why)
	}
	b := rebuild{Pick: p, info: info}
	e, err := b.run(ctx, why)
	if err != nil {
		return nil, fmt.Errorf("cannot send %s to the cluster: %s; %w", p.Path, why, err)
	}
	return e, nil
}

// BuildPackage builds the program of the package in a folder, such as ./myjob, for the cluster. The folder's own module counts, wherever the working
// directory is.
func BuildPackage(ctx context.Context, p Pick, dir string) (*Executable, error) {
	if p.Log != nil {
		p.Log(fmt.Sprintf("building %s for %s", dir, p.Platform))
	}
	if !filepath.IsAbs(dir) {
		p.Dir = filepath.Join(p.Dir, dir)
	} else {
		p.Dir = dir
	}
	e, err := p.build(ctx, []string{"."}, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot build the job in %s: %w", dir, err)
	}
	e.Source = dir
	return e, nil
}

// IsPackage reports whether an argument names the folder of a package rather than a job file.
func IsPackage(arg string) bool {
	st, err := os.Stat(arg)
	if err != nil || !st.IsDir() {
		return false
	}
	files, err := filepath.Glob(filepath.Join(arg, "*.go"))
	return err == nil && len(files) > 0
}

// rebuild is the making of a program from the source of another.
type rebuild struct {
	Pick
	info *buildinfo.BuildInfo
}

// source is where the program's source is.
type source struct {
	dir  string   // working directory of the build
	args []string // what to build
	name string   // for people
}

func (b rebuild) run(ctx context.Context, why string) (*Executable, error) {
	flags := keptFlags(b.info.Settings)
	src, err := b.find(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; build it by\n  %s", err, b.command(flags, b.fallbackName()))
	}
	if b.Log != nil {
		b.Log(fmt.Sprintf("building %s for %s anew, since %s", src.name, b.Platform, why))
	}
	b.Dir = src.dir
	var e *Executable
	for i := range src.args {
		if e, err = b.build(ctx, strings.Split(src.args[i], "\x00"), flags); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("building it anew failed: %w\nbuild it by\n  %s", err, b.command(flags, strings.ReplaceAll(src.args[0], "\x00", " ")))
	}
	if err := b.same(e); err != nil {
		e.Close()
		return nil, err
	}
	e.Source = src.name
	return e, nil
}

// same makes sure that what was built is the program that was to be built, of the same commit as far as both say.
func (b rebuild) same(e *Executable) error {
	info, err := buildinfo.ReadFile(e.Path)
	if err != nil {
		return fmt.Errorf("what was built is no program: %w", err)
	}
	if info.Main.Path != b.info.Main.Path {
		return fmt.Errorf("the source at hand is of the module %s, not %s; run the command in the folder of the program's source", info.Main.Path, b.info.Main.Path)
	}
	was, is := setting(b.info.Settings, "vcs.revision"), setting(info.Settings, "vcs.revision")
	if was != "" && is != "" && was != is {
		return fmt.Errorf("the source at hand is of commit %.12s, and the program of %.12s; build the program anew, or check out its commit", is, was)
	}
	return nil
}

// command is what a person would type to build the program.
func (b rebuild) command(flags []string, pkg string) string {
	words := []string{"CGO_ENABLED=0", "GOOS=" + b.Platform.OS, "GOARCH=" + b.Platform.Arch, "go", "build"}
	for _, f := range flags {
		if strings.ContainsAny(f, " \t'\"$") {
			f = "'" + strings.ReplaceAll(f, "'", `'\''`) + "'"
		}
		words = append(words, f)
	}
	return strings.Join(append(words, "-o", filepath.Base(b.Path), pkg), " ")
}

// fallbackName is the package's, where its source was not found.
func (b rebuild) fallbackName() string {
	if b.info.Path == "" || b.info.Path == "command-line-arguments" {
		return "."
	}
	return b.info.Path
}

// goCommand finds the go command.
func (p Pick) goCommand() (string, error) {
	name := p.Go
	if name == "" {
		name = "go"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", errors.New("there is no go command here to build it anew")
	}
	return path, nil
}

// build makes a static program for the platform in a folder of its own.
func (p Pick) build(ctx context.Context, pkg, flags []string) (*Executable, error) {
	command, err := p.goCommand()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(p.Temp, "heddle-build-*")
	if err != nil {
		return nil, err
	}
	remove := func() { os.RemoveAll(dir) }
	out := filepath.Join(dir, "program")
	cmd := exec.CommandContext(ctx, command, append(append([]string{"build"}, flags...), append([]string{"-o", out}, pkg...)...)...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.Platform.OS, "GOARCH="+p.Platform.Arch)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		remove()
		return nil, fmt.Errorf("%w\n%s", err, strings.TrimSpace(text.String()))
	}
	f, err := inspect(out)
	if err != nil {
		err = fmt.Errorf("what was built cannot be used: %w", err)
	}
	if err == nil && f.unfit(p.Platform) != "" {
		err = fmt.Errorf("what was built cannot be used: %s", f.unfit(p.Platform))
	}
	var e *Executable
	if err == nil {
		e, err = hashed(out)
	}
	if err != nil {
		remove()
		return nil, err
	}
	e.remove = remove
	return e, nil
}

// keptFlags are the flags of the first build that matter to what the program does.
func keptFlags(settings []debug.BuildSetting) []string {
	var flags []string
	for _, s := range settings {
		switch s.Key {
		case "-tags", "-ldflags", "-gcflags", "-asmflags":
			flags = append(flags, s.Key+"="+s.Value)
		case "-trimpath":
			flags = append(flags, s.Key)
		}
	}
	return flags
}

func setting(settings []debug.BuildSetting, key string) string {
	for _, s := range settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
