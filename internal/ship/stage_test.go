package ship

import (
	"archive/zip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/yarnclient"
)

// program makes a file that stands for a program.
func program(t *testing.T, content string) *Executable {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	e, err := hashed(file)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestStage(t *testing.T) {
	s, m := newStore(t)
	e := program(t, "a program")
	dir := t.TempDir()
	for name, text := range map[string]string{"d/a.txt": "a", "d/sub/b.txt": "b", "x.tar.gz": "not looked into", "lookup.csv": "1,2"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.MkdirAll("/data", 0o755); err != nil {
		t.Fatal(err)
	}
	m.put("/data/model.zip", "bob", 0o644, "model")
	extras, err := ParseExtras([]string{dir + "/d", dir + "/x.tar.gz#deps", dir + "/lookup.csv", "hdfs:///data/model.zip"})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	told := map[string]int64{}
	got, err := s.StageApplication(t.Context(), Application{ID: "application_1_0001", Exe: e, Name: "clicks", Extra: extras,
		Files: map[string][]byte{"conf.yaml": []byte("c"), "job.yaml": []byte("j")}}, func(what string, done, size int64) {
		mu.Lock()
		defer mu.Unlock()
		if done == size {
			told[what] = size
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	app := "/user/alice/.heddle/apps/application_1_0001"
	if got.Dir != app || got.Command != "./clicks" || got.Reused || told["program"] != e.Size || told["lookup.csv"] != 3 {
		t.Errorf("staged %+v; told %v", got, told)
	}
	var shown []string
	for _, r := range got.Resources {
		if r.Modified.UnixMilli() != m.now.UnixMilli() {
			t.Errorf("%s is of %v", r.Name, r.Modified)
		}
		kind := "file"
		if r.Archive {
			kind = "archive"
		}
		shown = append(shown, strings.Join([]string{r.Name, kind, string(r.Visibility), strings.ReplaceAll(r.URI, e.SHA256, "SUM")}, " "))
	}
	want := []string{
		"clicks file PRIVATE hdfs://ns/user/alice/.heddle/bin/SUM",
		"app archive APPLICATION hdfs://ns" + app + "/app.zip",
		"d archive APPLICATION hdfs://ns" + app + "/files/d.zip",
		"deps archive APPLICATION hdfs://ns" + app + "/files/deps.tar.gz",
		"lookup.csv file APPLICATION hdfs://ns" + app + "/files/lookup.csv",
		"model.zip archive PRIVATE hdfs://ns/data/model.zip",
	}
	if !slices.Equal(shown, want) {
		t.Errorf("resources:\n%s\nwant\n%s", strings.Join(shown, "\n"), strings.Join(want, "\n"))
	}
	unzip(t, m.files[app+"/app.zip"].data, "conf.yaml:c job.yaml:j")
	unzip(t, m.files[app+"/files/d.zip"].data, "a.txt:a sub/: sub/b.txt:b")
	if i := m.files[app].Info; i.Mode != 0o700 {
		t.Errorf("the application's folder has mode %o", i.Mode)
	}
	back, err := DecodeResources(EncodeResources(got.Resources))
	if err != nil || len(back) != len(want) || !reflect.DeepEqual(back[1], withoutZone(got.Resources[1])) {
		t.Errorf("back from the environment: %+v, %v", back, err)
	}
	if err := s.RemoveApplication("application_1_0001"); err != nil || len(m.has("/user/alice/.heddle/apps")) != 0 {
		t.Errorf("left: %v, %v", m.has("/user/alice/.heddle/apps"), err)
	}
}

func withoutZone(r yarnclient.LocalResource) yarnclient.LocalResource {
	r.Modified = time.UnixMilli(r.Modified.UnixMilli())
	return r
}

func unzip(t *testing.T, data, want string) {
	t.Helper()
	r, err := zip.NewReader(strings.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Name+":"+string(text))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("the archive holds %q, want %q", got, want)
	}
}

// TestStoreOnce stores a program once for many, and never touches it again.
func TestStoreOnce(t *testing.T) {
	s, m := newStore(t)
	e := program(t, "a program")
	var wg sync.WaitGroup
	var mu sync.Mutex
	stored := 0
	for range 8 {
		wg.Go(func() {
			r, reused, err := s.StoreBinary(t.Context(), e, nil)
			if err != nil || r.Size != e.Size || r.Visibility != yarnclient.Private || r.URI != "hdfs://ns/user/alice/.heddle/bin/"+e.SHA256 {
				t.Errorf("got %+v, %v", r, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !reused {
				stored++
			}
		})
	}
	wg.Wait()
	if stored != 1 {
		t.Errorf("%d say that they stored it", stored)
	}
	m.hook = func(call, name string) error {
		if call != "stat" && call != "mkdir" {
			t.Errorf("%s %s", call, name)
		}
		return nil
	}
	if _, reused, err := s.StoreBinary(t.Context(), e, nil); err != nil || !reused {
		t.Errorf("the second time: %v, %v", reused, err)
	}
}

// TestLostRace has another store the program between our look and our rename: theirs is used.
func TestLostRace(t *testing.T) {
	s, m := newStore(t)
	e := program(t, "a program")
	m.hook = func(call, name string) error {
		if call == "upload" {
			m.hook = nil
			m.put(name, "alice", 0o700, "a program")
		}
		return nil
	}
	if _, reused, err := s.StoreBinary(t.Context(), e, nil); err != nil || !reused {
		t.Errorf("got %v, %v", reused, err)
	}
}

func TestPlanted(t *testing.T) {
	for name, x := range map[string]struct {
		change func(s *Store, file, bin, root *node)
		want   string
	}{
		"ours":                  {func(*Store, *node, *node, *node) {}, ""},
		"a trusted user's":      {func(s *Store, f, _, _ *node) { s.Owners, f.Owner = []string{"admin"}, "admin" }, ""},
		"another's":             {func(_ *Store, f, _, _ *node) { f.Owner = "mallory" }, "in HDFS: it belongs to mallory, who could have planted it"},
		"another's folder":      {func(_ *Store, _, b, _ *node) { b.Owner = "mallory" }, "mallory"},
		"in another's folder":   {func(_ *Store, _, _, r *node) { r.Owner = "mallory" }, "mallory"},
		"open folder":           {func(_ *Store, _, b, _ *node) { b.Mode = 0o777 }, "chmod go-w /user/alice/.heddle/bin"},
		"group may write":       {func(_ *Store, f, _, _ *node) { f.Mode = 0o770 }, "chmod go-w /user/alice/.heddle/bin/"},
		"group may write above": {func(_ *Store, _, _, r *node) { r.Mode = 0o770 }, "chmod go-w /user/alice/.heddle"},
		"other size":            {func(_ *Store, f, _, _ *node) { f.Size = 4 }, "4 bytes, want 9"},
		"a folder":              {func(_ *Store, f, _, _ *node) { f.Dir = true }, "not the file"},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := newStore(t)
			e := program(t, "a program")
			if _, _, err := s.StoreBinary(t.Context(), e, nil); err != nil {
				t.Fatal(err)
			}
			names := []string{"/user/alice/.heddle/bin/" + e.SHA256, "/user/alice/.heddle/bin", "/user/alice/.heddle"}
			file, bin, root := m.files[names[0]], m.files[names[1]], m.files[names[2]]
			x.change(s, &file, &bin, &root)
			m.files[names[0]], m.files[names[1]], m.files[names[2]] = file, bin, root
			_, _, err := s.StoreBinary(t.Context(), e, nil)
			if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
}

// TestPublic shares programs among users only from a configured folder, and only if everybody can read them.
func TestPublic(t *testing.T) {
	m := newMemory("alice")
	s := &Store{FS: m, URI: "hdfs://ns", User: "alice", Root: "/heddle/alice", Provided: "/heddle/bin", Owners: []string{"admin"}, Public: true}
	e := program(t, "a program")
	if err := m.MkdirAll("/heddle", 0o755); err != nil {
		t.Fatal(err)
	}
	if r, _, err := s.StoreBinary(t.Context(), e, nil); err != nil || r.Visibility != yarnclient.Public {
		t.Errorf("from a folder for all: %+v, %v", r, err)
	}
	dir := m.files["/heddle"]
	dir.Mode = 0o750
	m.files["/heddle"] = dir
	if r, _, err := s.StoreBinary(t.Context(), e, nil); err != nil || r.Visibility != yarnclient.Private {
		t.Errorf("where not all may look: %+v, %v", r, err)
	}
	dir.Mode = 0o755
	m.files["/heddle"] = dir
	s.Public = false
	m.files["/heddle/bin"] = node{Info: hdfs.Info{Path: "/heddle/bin", Dir: true, Mode: 0o755, Owner: "admin"}}
	m.put("/heddle/bin/"+e.SHA256, "admin", 0o755, "a program")
	if r, reused, err := s.StoreBinary(t.Context(), e, nil); err != nil || r.Visibility != yarnclient.Public || !reused || r.URI != "hdfs://ns/heddle/bin/"+e.SHA256 {
		t.Errorf("an administrator's: %+v, %v", r, err)
	}
	m.put("/heddle/bin/"+e.SHA256, "mallory", 0o755, "a program")
	if r, _, err := s.StoreBinary(t.Context(), e, nil); err != nil || r.Visibility != yarnclient.Private || r.URI != "hdfs://ns/heddle/alice/bin/"+e.SHA256 {
		t.Errorf("beside a planted one: %+v, %v", r, err)
	}
}

// TestChangedMeanwhile does not store a program that is being written to under the name of what it was.
func TestChangedMeanwhile(t *testing.T) {
	s, m := newStore(t)
	e := program(t, "a program")
	if err := os.WriteFile(e.Path, []byte("b program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.StoreBinary(t.Context(), e, nil); err == nil || !strings.Contains(err.Error(), "has changed meanwhile") {
		t.Errorf("got %v", err)
	}
	if got := m.has("/user/alice/.heddle/bin"); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
}

// TestFailedStaging leaves nothing.
func TestFailedStaging(t *testing.T) {
	s, m := newStore(t)
	m.hook = func(call, name string) error {
		if call == "upload" && strings.HasSuffix(name, "app.zip") {
			return errors.New("the disk is full")
		}
		return nil
	}
	_, err := s.StageApplication(t.Context(), Application{ID: "application_1_0001", Exe: program(t, "a program")}, nil)
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v", err)
	}
	if got := m.has("/user/alice/.heddle/apps"); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}

// TestNoHome says what an administrator is to do.
func TestNoHome(t *testing.T) {
	s, m := newStore(t)
	m.hook = func(call, _ string) error {
		if call == "mkdir" {
			return fs.ErrPermission
		}
		return nil
	}
	_, err := s.StageApplication(t.Context(), Application{ID: "application_1_0001", Exe: program(t, "a program")}, nil)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "have an administrator make /user/alice and give it to alice") {
		t.Errorf("got %v", err)
	}
}

// TestPublish replaces the file of the attempt before, also after one that died half-way.
func TestPublish(t *testing.T) {
	s, m := newStore(t)
	dir := s.AppDir("application_1_0001")
	if err := m.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m.put(dir+"/address.next", "alice", 0o600, "half")
	for _, text := range []string{"first", "second"} {
		if err := s.Publish(t.Context(), "application_1_0001", "address", []byte(text)); err != nil || m.files[dir+"/address"].data != text {
			t.Errorf("got %q, %v", m.files[dir+"/address"].data, err)
		}
	}
	if got := m.has(dir); len(got) != 1 {
		t.Errorf("left %v", got)
	}
}
