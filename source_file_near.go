package heddle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

const (
	locatedFiles = 1000            // at most so many files are asked after, the largest
	locateTime   = 5 * time.Second // for all of them
	nearHosts    = 5               // of a split
)

// located is where files are kept, by their paths.
type located map[string][]FileBlock

// locate asks file systems that know it where files are kept. To know it makes a job faster and no more: what can't be learned, for lack of time too, is
// told once, and left.
func locate(ctx context.Context, files []FoundFile, env flow.EnumeratorEnv) located {
	ctx, cancel := context.WithTimeout(ctx, locateTime)
	defer cancel()
	at := located{}
	bySize := slices.SortedStableFunc(slices.Values(files), func(a, b FoundFile) int { return cmp.Compare(b.Size, a.Size) })
	for _, f := range bySize[:min(len(bySize), locatedFiles)] {
		err := at.add(ctx, f.Path)
		if err != nil {
			if env.Debug != nil {
				env.Debug(fmt.Sprintf("it is not known of all files where they are kept, so that readers may run elsewhere: %v", err))
			}
			break
		}
	}
	return at
}

// add asks after one file.
func (l located) add(ctx context.Context, path string) error {
	scheme := schemeOf(path)
	if scheme == "" {
		return nil
	}
	fsys, err := fileSystem(scheme)
	if err != nil {
		return err
	}
	known, ok := fsys.(FileLocator)
	if !ok {
		return nil
	}
	blocks, err := known.Locate(ctx, path)
	if err != nil {
		return err
	}
	l[path] = slices.SortedStableFunc(slices.Values(blocks), func(a, b FileBlock) int { return cmp.Compare(a.From, b.From) })
	return nil
}

// hosts are those that keep most of a piece, best first.
func (l located) hosts(p piece) (hosts []string) {
	bytes := map[string]int64{}
	blocks := l[p.Path]
	for _, b := range blocks[sort.Search(len(blocks), func(i int) bool { return blocks[i].To > p.From }):] {
		if b.From >= p.To {
			break
		}
		for _, h := range b.Hosts {
			if _, known := bytes[h]; !known {
				hosts = append(hosts, h)
			}
			bytes[h] += min(b.To, p.To) - max(b.From, p.From)
		}
	}
	slices.SortStableFunc(hosts, func(a, b string) int { return cmp.Compare(bytes[b], bytes[a]) })
	return slices.Clip(hosts[:min(len(hosts), nearHosts)])
}
