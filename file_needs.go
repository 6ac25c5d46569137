package heddle

import (
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Needs implements flow.Needing: the files.
func (s *FileSource) Needs() []flow.Need {
	var out []flow.Need
	for _, p := range s.patterns {
		out = append(out, flow.Need{Kind: flow.NeedPath, Name: p, Pattern: strings.ContainsAny(p, "*?["), Read: true})
	}
	return out
}

// Needs implements flow.Needing: the folder.
func (s *FileSink) Needs() []flow.Need {
	return []flow.Need{{Kind: flow.NeedPath, Name: s.dir, Read: true, Write: true}}
}
