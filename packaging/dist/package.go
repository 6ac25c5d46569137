package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the two formats
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// place is where a package puts a file of the folder; "": nowhere.
func place(format, name string) string {
	base := path.Base(name)
	switch dir := strings.SplitN(name, "/", 2)[0]; {
	case name == "bin/heddle":
		return "/usr/lib/heddle/bin/heddle" // what yarn.binary names on every node
	case name == "conf/heddle.yaml":
		return "/etc/heddle/heddle.yaml"
	case dir == "hadoop":
		return "/usr/lib/heddle/hadoop/" + base
	case dir == "man":
		return "/usr/share/man/man1/" + base + ".gz"
	case base == "heddle.bash":
		return "/usr/share/bash-completion/completions/heddle"
	case base == "heddle.fish":
		return "/usr/share/fish/vendor_completions.d/heddle.fish"
	case base == "_heddle" && format == "deb":
		return "/usr/share/zsh/vendor-completions/_heddle"
	case base == "_heddle":
		return "/usr/share/zsh/site-functions/_heddle"
	}
	return "/usr/share/doc/heddle/" + name
}

// pack makes a package for a family of systems.
func (r release) pack(format string, list []string) error {
	info := &nfpm.Info{
		Name: "heddle", Arch: r.arch, Platform: "linux", Version: r.plain(), VersionSchema: "semver", Release: "1",
		Section: "utils", Priority: "optional", Maintainer: "The Heddle authors", License: "Apache-2.0", MTime: r.at,
		Description: "Stream processing on Hadoop YARN\n Runs jobs written in Go or YAML on YARN, without Java on the gateway. One static program is the\n command, the ApplicationMaster and the agents.",
		Overridables: nfpm.Overridables{
			Recommends: []string{"bash-completion"},
			RPM:        nfpm.RPM{Group: "Applications/System", Summary: "Stream processing on Hadoop YARN"},
		},
	}
	scratch, err := os.MkdirTemp("", "heddle-dist-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, name := range list {
		c := &files.Content{Source: filepath.Join(r.root, name), Destination: place(format, name),
			FileInfo: &files.ContentFileInfo{Mode: mode(name), MTime: r.at, Owner: "root", Group: "root"}}
		switch {
		case strings.HasPrefix(name, "man/"):
			if c.Source, err = compressed(c.Source, scratch); err != nil {
				return err
			}
		case name == "conf/heddle.yaml":
			c.Type = files.TypeConfigNoReplace
		}
		info.Contents = append(info.Contents, c)
	}
	info.Contents = append(info.Contents, &files.Content{Type: files.TypeSymlink, Source: "../lib/heddle/bin/heddle", Destination: "/usr/bin/heddle",
		FileInfo: &files.ContentFileInfo{MTime: r.at}})
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return r.create(packager.ConventionalFileName(info), func(out *os.File) error { return packager.Package(info, out) })
}

// compressed makes a compressed copy of a man page, as systems want them.
func compressed(file, dir string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, filepath.Base(file)+".gz")
	return out, os.WriteFile(out, b.Bytes(), 0o644)
}
