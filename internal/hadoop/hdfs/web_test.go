package hdfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// both runs a test with WebHDFS, also behind Knox, and with HttpFS.
func both(t *testing.T, test func(t *testing.T, fake *fakeWeb, f *FS)) {
	t.Run("knox", func(t *testing.T) {
		fake := newFake(t, false).behindKnox()
		test(t, fake, fake.fs())
	})
	for name, httpFS := range map[string]bool{"webhdfs": false, "httpfs": true} {
		t.Run(name, func(t *testing.T) {
			fake := newFake(t, httpFS)
			test(t, fake, fake.fs())
		})
	}
}

func of1(text string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

// TestWebFiles writes files of one request and of several, and reads them from anywhere, also where answers break off.
func TestWebFiles(t *testing.T) {
	both(t, func(t *testing.T, fake *fakeWeb, f *FS) {
		f.web.chunk = 1000
		large := make([]byte, 2500)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range large {
			large[i] = byte(r.Uint32())
		}
		for name, content := range map[string][]byte{"/user/a b+c%d?e#f": []byte("few"), "/user/large": large, "/user/empty": {}} {
			info, err := f.Upload(t.Context(), name, 0o600, of1(string(content)), nil)
			if err != nil || info.Size != int64(len(content)) || info.Path != name || info.Owner != "alice" || info.Mode != 0o755 {
				t.Fatalf("%s: %+v, %v", name, info, err)
			}
			if _, err := f.Upload(t.Context(), name, 0o600, of1("x"), nil); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s again: %v", name, err)
			}
			fake.cut = 2
			if got, err := f.ReadFile(name, 1<<30); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: read %d bytes of %d: %v", name, len(got), len(content), err)
			}
			at := len(content) / 3
			in, err := f.OpenAt(t.Context(), name, int64(at))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, content[at:]) {
				t.Errorf("%s from %d on: read %d bytes of %d: %v", name, at, len(got), len(content)-at, err)
			}
			_ = in.Close()
		}
		if _, err := f.ReadFile("/user/large", 10); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("a limit of 10 bytes: %v", err)
		}
		if n := len(fake.files); n != 6 {
			t.Errorf("there are %d files and folders", n)
		}
	})
}

// TestWebWriter appends what comes after a flush, replaces another file or not, and leaves nothing where it is given up.
func TestWebWriter(t *testing.T) {
	both(t, func(t *testing.T, fake *fakeWeb, f *FS) {
		write := func(tmp string) *Writer {
			w, err := f.Create(tmp, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"one ", "two ", "three"} {
				if _, err := w.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			return w
		}
		w := write("/user/.tmp")
		if err := w.Finish(t.Context(), "/user/out", false); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		if got := string(fake.files["/user/out"]); got != "one two three" {
			t.Errorf("the file has %q", got)
		}
		w = write("/user/.tmp")
		if err := w.Finish(t.Context(), "/user/out", false); !errors.Is(err, fs.ErrExist) {
			t.Errorf("over another: %v", err)
		}
		fake.files["/user/out"] = []byte("old")
		if err := f.Rename(t.Context(), "/user/.tmp", "/user/out", true); err != nil || string(fake.files["/user/out"]) != "one two three" {
			t.Errorf("in place of another: %v, %q", err, fake.files["/user/out"])
		}
		if err := f.Rename(t.Context(), "/user/none", "/user/out2", false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of none: %v", err)
		}
		w = write("/user/.tmp")
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if _, there := fake.files["/user/.tmp"]; there {
			t.Error("what was given up is there")
		}
		if w, err := f.Create("/coded/x", 0o600); err != nil || w.Finish(t.Context(), "/coded/y", false) != nil || fake.flags != "create,should_replicate" {
			t.Errorf("where files are erasure-coded: %v, %q", err, fake.flags)
		}
		if _, err := f.Create("/none/x", 0o600); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("in no folder: %v", err)
		}
	})
}

func TestWebFolders(t *testing.T) {
	both(t, func(t *testing.T, fake *fakeWeb, f *FS) {
		fake.files["/zone"], fake.files["/user/b"], fake.files["/user/a"] = nil, []byte("bb"), []byte("a")
		ctx := t.Context()
		if err := errors.Join(f.MkdirAll("/user/dir", 0o755), f.Chmod("/user/dir", 0o777|fs.ModeSticky), f.Chown("/user/dir", "bob", "users"), f.RemoveAll("/user/none"), f.RemoveAll("/user/a")); err != nil {
			t.Error(err)
		}
		found, err := f.Glob("/user/*")
		if text := fmt.Sprintln(len(found), found[0].Path, found[0].Size, found[1].Path, found[1].Dir); err != nil || text != "2 /user/b 2 /user/dir true\n" {
			t.Errorf("found %s, %v", text, err)
		}
		if _, err := f.Stat("/none"); !errors.Is(err, fs.ErrNotExist) || TroubleOf(err) != NotFound {
			t.Errorf("none: %v", err)
		}
		if err := f.CheckAccess(ctx, "/user", AccessRead); err != nil {
			t.Error(err)
		}
		if q, err := f.Quota(ctx, "/user"); err != nil || q != (QuotaUsage{Names: 3, NamesQuota: 10, Space: 5}) {
			t.Errorf("quota %+v, %v", q, err)
		}
		p, err := f.Place(ctx, "/zone/a/b")
		want := Place{Dir: "/zone", Encrypted: true, Block: 300}
		if fake.httpFS {
			want.Block = 0
		}
		if err != nil || fmt.Sprint(p) != fmt.Sprint(want) || p.Takes(1, 1) != nil {
			t.Errorf("place %+v, %v", p, err)
		}
		at, err := f.Blocks(ctx, "/user/b")
		if text := fmt.Sprint(at); err != nil || text != map[bool]string{false: "[{0 100 [h1 h2]} {100 107 []}]", true: "[]"}[fake.httpFS] {
			t.Errorf("kept at %s, %v", text, err)
		}
		fake.denied = "/user"
		_, err = f.List("/user")
		if TroubleOf(err) != Denied || strings.Contains(err.Error(), "some.Class") || strings.Contains(err.Error(), secretToken) {
			t.Errorf("denied: %v", err)
		}
		fake.close()
		if _, err = f.List("/user"); TroubleOf(err) != Unreachable || strings.Contains(err.Error(), secretToken) || !strings.Contains(err.Error(), "(http://127.0.0.1:") {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestWebChanged refuses a file that was changed between two of its parts.
func TestWebChanged(t *testing.T) {
	fake := newFake(t, false)
	fake.files["/user/x"], fake.cut = bytes.Repeat([]byte("x"), 1000), 1
	r, err := fake.fs().OpenAt(t.Context(), "/user/x", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fake.files["/user/x"] = append(fake.files["/user/x"], 'y')
	if _, err := io.ReadAll(r); !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("got %v", err)
	}
	if n := len(slices.DeleteFunc(fake.ops, func(op string) bool { return op != "OPEN" })); n != 2 { // one, and where that sent us
		t.Errorf("opened %d times", n)
	}
}

func TestWebRefusals(t *testing.T) {
	for name, web := range map[string]func([]string) (Web, error){
		"scheme": func([]string) (Web, error) { return Web{Bases: []string{"ftp://h/x?delegation=" + secretToken}}, nil },
		"error":  func([]string) (Web, error) { return Web{}, io.ErrUnexpectedEOF },
	} {
		if _, err := Open(Config{NameNodes: []string{"127.0.0.1:1"}, Web: web}); err == nil || strings.Contains(err.Error(), secretToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A server that sends us round and round.
	fake := newFake(t, false)
	fake.files["/user/x"] = []byte("x")
	fake.data.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", fake.data.URL+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	if _, err := fake.fs().ReadFile("/user/x", 10); err == nil || !strings.Contains(err.Error(), "from one server to another") {
		t.Errorf("round: %v", err)
	}
	if _, err := fake.fs().Upload(t.Context(), "/user/y", 0o600, of1("y"), nil); err == nil || !strings.Contains(err.Error(), "does not say where") {
		t.Errorf("round: %v", err)
	}
}
