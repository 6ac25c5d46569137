package collected

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// of is a source of bytes.
func of(data []byte) Source {
	return Source{int64(len(data)), func(at int64) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data[at:])), nil }}
}

// logs reads all of a file.
func logs(data []byte) (out []string, err error) {
	err = Each(of(data), func(l Log) error {
		text, err := io.ReadAll(l)
		if err == nil && int64(len(text)) != l.Size {
			err = fmt.Errorf("%s of %s has %d bytes of %d", l.Name, l.Container, len(text), l.Size)
		}
		out = append(out, l.Container+" "+l.Name+" "+string(text))
		return err
	})
	return out, err
}

// lines are what the test's containers wrote.
func lines(container int) string {
	var s strings.Builder
	for n := range 40 * container {
		fmt.Fprintf(&s, "line %d of %d\n", n, container)
	}
	return s.String()
}

// TestEach reads files that Hadoop 3.4.3 wrote by AggregatedLogFormat.LogWriter: in one chunk, and compressed with chunks of 64 bytes.
func TestEach(t *testing.T) {
	const id = "container_1767225600000_0007_01_00000"
	want := []string{id + "1 stderr " + lines(1), id + "1 stdout ", id + "2 stderr " + lines(2), id + "2 stdout done\n"}
	for _, name := range []string{"none", "gz"} {
		got, err := logs(file(t, name))
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v\n%q", name, err, got)
		}
	}
}

// TestPart: who looks at a part of a log sees the next one all the same, and who has seen enough is not asked again.
func TestPart(t *testing.T) {
	n := 0
	if err := Each(of(file(t, "gz")), func(l Log) error {
		n++
		_, err := io.ReadFull(l, make([]byte, min(l.Size, 3)))
		return err
	}); err != nil || n != 4 {
		t.Errorf("%d logs, %v", n, err)
	}
	enough := errors.New("enough")
	n = 0
	if err := Each(of(file(t, "none")), func(Log) error { n++; return enough }); !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d logs, %v", n, err)
	}
}

// TestOthers: what is no such file, or is cut off or spoilt, is an error.
func TestOthers(t *testing.T) {
	for _, data := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("x"), 1000)} {
		if _, err := logs(data); !errors.Is(err, ErrFormat) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
	whole := file(t, "none")
	lzo := bytes.ReplaceAll(whole, []byte("\x04none"), []byte("\x04lzo?"))
	if _, err := logs(lzo); err == nil || !strings.Contains(err.Error(), "lzo") {
		t.Errorf("compressed otherwise: %v", err)
	}
	if _, err := logs(append(whole[:100:100], whole[200:]...)); err == nil {
		t.Error("what lacks 100 bytes is read")
	}
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".tfile")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzEach(f *testing.F) {
	for _, name := range []string{"none", "gz"} {
		f.Add(file(f, name))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = logs(data)
	})
}
