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
// wherever the source's subtasks run.
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
func (s *FileSource) Enumerator(context.Context, flow.EnumeratorEnv) (flow.Enumerator, error) {
	paths, err := s.list()
	if err != nil {
		return nil, err
	}
	var splits []flow.Split
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", p, err)
		}
		for _, piece := range s.cut(p, info.Size()) {
			state, err := json.Marshal(piece)
			if err != nil {
				return nil, fmt.Errorf("cannot describe split of %s: %w", p, err)
			}
			splits = append(splits, flow.Split{ID: fmt.Sprintf("%s:%d", p, piece.From), State: state})
		}
	}
	return &staticSplits{splits: splits}, nil
}

// cut cuts a file into pieces.
func (s *FileSource) cut(path string, size int64) []piece {
	n := int64(1)
	if s.pieceBytes > 0 && !compressed(path) {
		n = max(1, (size+s.pieceBytes-1)/s.pieceBytes)
	}
	pieces := make([]piece, n)
	for i := range pieces {
		pieces[i] = piece{Path: path, From: size * int64(i) / n, To: size * int64(i+1) / n}
	}
	return pieces
}

// list returns the files that match, sorted, each once.
func (s *FileSource) list() ([]string, error) {
	var all []string
	for _, pattern := range s.patterns {
		if info, err := os.Stat(pattern); err == nil && info.IsDir() {
			pattern = filepath.Join(pattern, "*")
		}
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("cannot read files %s: %w", pattern, err)
		}
		paths = slices.DeleteFunc(paths, func(p string) bool {
			info, err := os.Stat(p)
			base := filepath.Base(p)
			return err != nil || !info.Mode().IsRegular() || pattern != p && (base[0] == '.' || base[0] == '_')
		})
		if len(paths) == 0 {
			return nil, fmt.Errorf("cannot read files: none matches %s", pattern)
		}
		all = append(all, paths...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot read files: no pattern given")
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func compressed(path string) bool { return strings.HasSuffix(path, ".gz") }

// NewMessageReader implements MessageSource.
func (s *FileSource) NewMessageReader(_ context.Context, _ flow.ReaderEnv, want flow.MessageFields) (flow.MessageReader, error) {
	return &fileReader{want: want}, nil
}
