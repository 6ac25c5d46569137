package heddle

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Files is a source of the lines of files: those that match the patterns (see path/filepath.Match); of a directory,
// all files in it whose name begins with neither "." nor "_". It ends when all are read.
//
// A blank line is left out where the format can make nothing of it, as JSON can't; Text makes an empty record of it.
//
// A big file is read in several pieces at once, unless it is compressed (its name ends in .gz). The files must be the same
// wherever the source's subtasks run: those of a URI such as hdfs:///data/clicks are; see RegisterFileSystem.
func Files(patterns ...string) *FileSource {
	return &FileSource{patterns: patterns, pieceBytes: 64 << 20}
}

// FileSource reads lines of files.
type FileSource struct {
	patterns   []string
	pieceBytes int64
}

// WholeFiles keeps every file in one piece, so that its lines stay in order.
func (s *FileSource) WholeFiles() *FileSource {
	s.pieceBytes = 0
	return s
}

// Describe implements MessageSource.
func (s *FileSource) Describe() string { return "files " + strings.Join(s.patterns, " ") }

// Bounded implements MessageSource.
func (s *FileSource) Bounded() bool { return true }

// piece is a range of a file: the lines that begin at From ≤ offset < To. It is the state of a split.
type piece struct {
	Path     string
	From, To int64
}

// Enumerator implements MessageSource.
func (s *FileSource) Enumerator(ctx context.Context, env flow.EnumeratorEnv) (flow.Enumerator, error) {
	files, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	at := locate(ctx, files, env)
	var splits []flow.Split
	for _, f := range files {
		for _, piece := range s.cut(f) {
			state, err := json.Marshal(piece)
			if err != nil {
				return nil, fmt.Errorf("cannot describe split of %s: %w", f.Path, err)
			}
			splits = append(splits, flow.Split{ID: fmt.Sprintf("%s:%d", f.Path, piece.From), State: state, Hosts: at.hosts(piece)})
		}
	}
	return &staticSplits{splits: splits}, nil
}

// cut cuts a file into pieces: whole blocks, if it is kept so.
func (s *FileSource) cut(f FoundFile) []piece {
	n := int64(1)
	if s.pieceBytes > 0 && !compressed(f.Path) {
		size := s.pieceBytes
		if f.Block > 0 {
			size = max(1, size/f.Block) * f.Block
		}
		n = max(1, (f.Size+size-1)/size)
		if f.Block > 0 {
			pieces := make([]piece, n)
			for i := range pieces {
				pieces[i] = piece{Path: f.Path, From: size * int64(i), To: min(f.Size, size*int64(i+1))}
			}
			return pieces
		}
	}
	pieces := make([]piece, n)
	for i := range pieces {
		pieces[i] = piece{Path: f.Path, From: f.Size * int64(i) / n, To: f.Size * int64(i+1) / n}
	}
	return pieces
}

// list returns the files that match, sorted, each once.
func (s *FileSource) list(ctx context.Context) ([]FoundFile, error) {
	var all []FoundFile
	for _, pattern := range s.patterns {
		find := findLocal
		if scheme := schemeOf(pattern); scheme != "" {
			fsys, err := fileSystem(scheme)
			if err != nil {
				return nil, fmt.Errorf("cannot read files %s: %w", pattern, err)
			}
			find = fsys.Find
		}
		files, err := find(ctx, pattern)
		if err != nil {
			return nil, fmt.Errorf("cannot read files %s: %w", pattern, err)
		}
		files = slices.DeleteFunc(files, func(f FoundFile) bool { return pattern != f.Path && !visible(f.Path) })
		if len(files) == 0 {
			return nil, fmt.Errorf("cannot read files: none matches %s", pattern)
		}
		all = append(all, files...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot read files: no pattern given")
	}
	slices.SortFunc(all, func(a, b FoundFile) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(all, func(a, b FoundFile) bool { return a.Path == b.Path }), nil
}

// findLocal is FileSystem.Find for files of this host.
func findLocal(_ context.Context, pattern string) ([]FoundFile, error) {
	if info, err := os.Stat(pattern); err == nil && info.IsDir() {
		pattern = filepath.Join(pattern, "*")
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var files []FoundFile
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			files = append(files, FoundFile{Path: p, Size: info.Size()})
		}
	}
	return files, nil
}

func compressed(path string) bool { return strings.HasSuffix(path, ".gz") }

// NewMessageReader implements MessageSource.
func (s *FileSource) NewMessageReader(ctx context.Context, env flow.ReaderEnv, want flow.MessageFields) (flow.MessageReader, error) {
	ahead := func(p piece) (*readAhead, error) { return startReadAhead(ctx, p, env.Runtime.Wake) }
	return &fileReader{want: want, ahead: ahead}, nil
}
