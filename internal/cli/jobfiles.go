package cli

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// A job file may name other files, such as schemas. They go wherever the job file goes, as comments at its end:
//
//	#heddle-file "clicks.avsc" eyJ0eXBlIjogInJlY29yZCIs…
const fileComment = "\n#heddle-file "

// jobFiles reads the files that a job file names, and keeps what it has read.
type jobFiles struct {
	dir  string // that names are relative to
	read map[string][]byte
}

// maxJobFile bounds what a job file may take along: all of it is in the memory of every process.
const maxJobFile = 4 << 20

// file reads one.
func (f *jobFiles) file(name string) ([]byte, error) {
	if data, ok := f.read[name]; ok {
		return data, nil
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) > maxJobFile {
		return nil, fmt.Errorf("%s has %d bytes, and at most %d can go along with a job", path, len(data), maxJobFile)
	}
	f.read[name] = data
	return data, nil
}

// attach returns a job file's text with the files that were read.
func (f *jobFiles) attach(text []byte) []byte {
	if len(f.read) == 0 {
		return text
	}
	out := bytes.Clone(text)
	for _, name := range slices.Sorted(maps.Keys(f.read)) {
		out = append(out, fileComment+strconv.Quote(name)+" "...)
		out = base64.StdEncoding.AppendEncode(out, f.read[name])
	}
	return append(out, '\n')
}

// attached returns the text of a job file as its author wrote it, and what reads the files that came with it.
func attached(data []byte) ([]byte, func(name string) ([]byte, error)) {
	files := map[string][]byte{}
	text := data
	if i := bytes.Index(data, []byte(fileComment)); i >= 0 {
		text = data[:i]
		for _, line := range bytes.Split(data[i:], []byte(fileComment))[1:] {
			quoted, err := strconv.QuotedPrefix(string(line))
			if err != nil {
				continue // an author's own comment
			}
			name, _ := strconv.Unquote(quoted)
			content, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(line[len(quoted):])))
			if err == nil {
				files[name] = content
			}
		}
	}
	return text, func(name string) ([]byte, error) {
		content, ok := files[name]
		if !ok {
			return nil, fmt.Errorf("%s did not come along with the job", name)
		}
		return content, nil
	}
}
