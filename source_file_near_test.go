package heddle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// nearFiles is a file system that knows where its files are.
type nearFiles struct {
	files  []FoundFile
	locate func(ctx context.Context, name string) ([]FileBlock, error)
}

func (n *nearFiles) Find(context.Context, string) ([]FoundFile, error) { return n.files, nil }
func (n *nearFiles) Locate(ctx context.Context, name string) ([]FileBlock, error) {
	return n.locate(ctx, name)
}
func (*nearFiles) Open(context.Context, string, int64) (io.ReadCloser, error) { return nil, io.EOF }
func (*nearFiles) Create(context.Context, string, bool) (PendingFile, error)  { return nil, io.EOF }

// splitsOf are the splits of a source over a file system, as "id@hosts", and what was told for the log.
func splitsOf(t *testing.T, n *nearFiles, s *FileSource) (splits, told []string) {
	t.Helper()
	RegisterFileSystem("near", func() (FileSystem, error) { return n, nil })
	e, err := s.Enumerator(t.Context(), flow.EnumeratorEnv{Readers: 2, Debug: func(msg string) { told = append(told, msg) }})
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range d.Added {
		splits = append(splits, strings.TrimPrefix(x.ID, "near://")+"@"+strings.Join(x.Hosts, ","))
	}
	return splits, told
}

// TestSplitHosts puts splits where most of their bytes are.
func TestSplitHosts(t *testing.T) {
	n := &nearFiles{files: []FoundFile{{Path: "near://f/a", Size: 250, Block: 100}, {Path: "near://f/b.gz", Size: 250, Block: 100}, {Path: "near://f/c", Size: 0, Block: 100}},
		locate: func(_ context.Context, name string) ([]FileBlock, error) {
			if name == "near://f/c" {
				return nil, nil
			}
			return []FileBlock{{200, 250, []string{"n5", "n6", "n7", "n8", "n9"}}, {0, 100, []string{"n2", "n1"}}, {100, 200, []string{"n3", "n1"}}}, nil
		}}
	for _, x := range []struct {
		s    *FileSource
		want string
	}{
		{&FileSource{patterns: []string{"near://f"}, pieceBytes: 100}, "f/a:0@n2,n1 f/a:100@n3,n1 f/a:200@n5,n6,n7,n8,n9 f/b.gz:0@n1,n2,n3,n5,n6 f/c:0@"},
		{&FileSource{patterns: []string{"near://f"}, pieceBytes: 200}, "f/a:0@n1,n2,n3 f/a:200@n5,n6,n7,n8,n9 f/b.gz:0@n1,n2,n3,n5,n6 f/c:0@"},
		{Files("near://f").WholeFiles(), "f/a:0@n1,n2,n3,n5,n6 f/b.gz:0@n1,n2,n3,n5,n6 f/c:0@"},
	} {
		if got, told := splitsOf(t, n, x.s); strings.Join(got, " ") != x.want || len(told) > 0 {
			t.Errorf("pieces of %d: got %q, told %q, want %s", x.s.pieceBytes, got, told, x.want)
		}
	}
}

// TestSplitHostsUnknown does without hosts where they can't be learned, or not in time, and tells it once.
func TestSplitHostsUnknown(t *testing.T) {
	big := FoundFile{Path: "near://f/big", Size: 3}
	small, third := FoundFile{Path: "near://f/a", Size: 1}, FoundFile{Path: "near://f/third", Size: 2}
	n1 := []FileBlock{{0, 3, []string{"n1"}}}
	synctest.Test(t, func(t *testing.T) {
		n := &nearFiles{files: []FoundFile{small, big, third}, locate: func(ctx context.Context, name string) ([]FileBlock, error) {
			if name == big.Path {
				return n1, nil
			}
			return nil, errors.New("no answer")
		}}
		got, told := splitsOf(t, n, Files("near://f"))
		if fmt.Sprint(got) != "[f/a:0@ f/big:0@n1 f/third:0@]" || len(told) != 1 || !strings.Contains(told[0], "no answer") {
			t.Errorf("with an error: got %q, told %q", got, told)
		}
		n.locate = func(ctx context.Context, _ string) ([]FileBlock, error) { <-ctx.Done(); return nil, ctx.Err() }
		start := time.Now()
		if got, told := splitsOf(t, n, Files("near://f")); len(got) != 3 || len(told) != 1 || time.Since(start) != locateTime {
			t.Errorf("in silence: got %q, told %q after %v", got, told, time.Since(start))
		}
	})
}

// TestSplitHostsMany asks after the largest files only.
func TestSplitHostsMany(t *testing.T) {
	n := &nearFiles{}
	for i := range locatedFiles + 10 {
		n.files = append(n.files, FoundFile{Path: fmt.Sprintf("near://f/%05d", i), Size: int64(i)})
	}
	asked := 0
	n.locate = func(context.Context, string) ([]FileBlock, error) {
		asked++
		return []FileBlock{{0, 1 << 20, []string{"n1"}}}, nil
	}
	got, _ := splitsOf(t, n, Files("near://f"))
	unknown := slices.DeleteFunc(got, func(s string) bool { return strings.HasSuffix(s, "@n1") })
	if asked != locatedFiles || len(unknown) != 10 || unknown[9] != "f/00009:0@" {
		t.Errorf("asked %d times; not located: %q", asked, unknown)
	}
}
