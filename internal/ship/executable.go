package ship

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Platform is what a program was built for, in Go's words.
type Platform struct{ OS, Arch string }

// String is the usual form, such as linux/amd64.
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Host is the platform of this process.
func Host() Platform { return Platform{runtime.GOOS, runtime.GOARCH} }

// ParsePlatform reads the form linux/amd64. Empty, it is the cluster's likely one: this host's if that is Linux, else linux/amd64.
func ParsePlatform(s string) (Platform, error) {
	if s == "" {
		if runtime.GOOS == "linux" {
			return Host(), nil
		}
		return Platform{"linux", "amd64"}, nil
	}
	system, arch, ok := strings.Cut(s, "/")
	if !ok || system == "" || arch == "" || strings.Contains(arch, "/") {
		return Platform{}, fmt.Errorf("cannot use platform %q: it must be of the form linux/amd64", s)
	}
	return Platform{system, arch}, nil
}

// Executable is a program to send to a cluster.
type Executable struct {
	Path   string // a local file
	SHA256 string // of its content, in hexadecimal
	Size   int64
	Source string // the folder or package it was built from just now; "": it was there

	remove func() // of a temporary build
}

// Close removes the file, if it was built for the purpose.
func (e *Executable) Close() {
	if e.remove != nil {
		e.remove()
	}
}

// hashed describes a file.
func hashed(path string) (*Executable, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the program: %w", err)
	}
	defer file.Close()
	h := sha256.New()
	size, err := io.Copy(h, file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the program %s: %w", path, err)
	}
	return &Executable{Path: path, SHA256: hex.EncodeToString(h.Sum(nil)), Size: size}, nil
}

// form is what a program file is.
type form struct {
	platform Platform
	dynamic  string // the loader it needs; "": none
}

// machines are Go's names of the machines in ELF headers.
var machines = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_S390: "s390x", elf.EM_RISCV: "riscv64",
	elf.EM_386: "386", elf.EM_ARM: "arm", elf.EM_LOONGARCH: "loong64"}

// inspect reads a program's header.
func inspect(path string) (form, error) {
	head := make([]byte, 4)
	file, err := os.Open(path)
	if err != nil {
		return form{}, fmt.Errorf("cannot read the program: %w", err)
	}
	defer file.Close()
	if _, err := io.ReadFull(file, head); err != nil {
		return form{}, fmt.Errorf("cannot read the program %s: %w", path, err)
	}
	switch {
	case string(head) == elf.ELFMAG:
		return inspectELF(path, file)
	case bytes.HasPrefix(head, []byte("MZ")):
		return form{platform: Platform{"windows", "some"}}, nil
	case bytes.HasSuffix(head, []byte{0xfa, 0xed, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xed, 0xfa}), bytes.Equal(head, []byte{0xca, 0xfe, 0xba, 0xbe}):
		return form{platform: Platform{"darwin", "some"}}, nil
	case string(head) == "!<ar":
		return form{}, fmt.Errorf("cannot use %s: it is a library, not a program: its package is not main", path)
	case bytes.HasPrefix(head, []byte("#!")):
		return form{}, fmt.Errorf("cannot send %s to a cluster: it is a script, not a program", path)
	}
	return form{}, fmt.Errorf("cannot send %s to a cluster: it is no program", path)
}

func inspectELF(path string, r io.ReaderAt) (form, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return form{}, fmt.Errorf("cannot read the program %s: %w", path, err)
	}
	out := form{platform: Platform{"linux", machines[f.Machine]}}
	if out.platform.Arch == "" {
		out.platform.Arch = strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_"))
	}
	switch f.Machine {
	case elf.EM_PPC64:
		out.platform.Arch = "ppc64"
		if f.Data == elf.ELFDATA2LSB {
			out.platform.Arch = "ppc64le"
		}
	case elf.EM_MIPS:
		out.platform.Arch = "mips"
	}
	switch f.OSABI {
	case elf.ELFOSABI_FREEBSD:
		out.platform.OS = "freebsd"
	case elf.ELFOSABI_NETBSD:
		out.platform.OS = "netbsd"
	case elf.ELFOSABI_OPENBSD:
		out.platform.OS = "openbsd"
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		loader, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
		if err != nil {
			return form{}, fmt.Errorf("cannot read the program %s: %w", path, err)
		}
		out.dynamic = string(bytes.TrimRight(loader, "\x00"))
	}
	return out, nil
}

// unfit says why a program can't run on a cluster of the platform; "" if it can.
func (f form) unfit(cluster Platform) string {
	switch {
	case f.platform != cluster:
		return fmt.Sprintf("it is for %s, and the cluster's nodes are %s", f.platform, cluster)
	case f.dynamic != "":
		return fmt.Sprintf("it is linked dynamically (it needs %s and the libraries of this host, which nodes may lack)", f.dynamic)
	}
	return ""
}

// LocalBinary is a program that is on every node already.
type LocalBinary struct {
	Path   string // on the nodes
	SHA256 string // what it must be
}

// FindLocalBinary reads the value local:/path of the option yarn.binary. The program on the nodes must be the one that is under that path
// here; if there is none, that in exe.
func FindLocalBinary(value, exe string) (LocalBinary, error) {
	path, ok := strings.CutPrefix(value, "local:")
	if !ok || !filepath.IsAbs(path) || strings.ContainsAny(path, "'\"\\$` \t\n") {
		return LocalBinary{}, fmt.Errorf("cannot use yarn.binary %q: it must be local: and the absolute path of the program on the nodes, without blanks and quotes, such as local:/usr/lib/heddle/bin/heddle", value)
	}
	here := path
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		here = exe
	}
	e, err := hashed(here)
	if err != nil {
		return LocalBinary{}, err
	}
	return LocalBinary{path, e.SHA256}, nil
}

// Command is how bash starts the program in a container, after it has made sure that it is the right one. YARN puts it between double
// quotes, so that it has neither these nor a dollar sign, and replaces <LOG_DIR>.
func (l LocalBinary) Command() string {
	return fmt.Sprintf("echo '%s  %s' | sha256sum -c - >/dev/null 2>&1 || "+
		"{ echo 'heddle: %s on this node is not the program of the client (SHA-256 %s): install the same package on every node, or unset yarn.binary' >><LOG_DIR>/stderr; exit 3; }; exec %s",
		l.SHA256, l.Path, l.Path, l.SHA256, l.Path)
}
