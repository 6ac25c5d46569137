package ship

import (
	"path"
	"strings"
	"testing"
	"time"
)

// gcStore has two applications with a program each, and a third program that nobody names.
func gcStore(t *testing.T) (s *Store, m *memory, sums []string) {
	t.Helper()
	s, m = newStore(t)
	for i, text := range []string{"one", "two", "three"} {
		e := program(t, text)
		sums = append(sums, e.SHA256)
		var err error
		if i < 2 {
			_, err = s.StageApplication(t.Context(), Application{ID: "application_1_000" + string(rune('1'+i)), Exe: e}, nil)
		} else {
			_, _, err = s.StoreBinary(t.Context(), e, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, m, sums
}

func TestGC(t *testing.T) {
	s, m, sums := gcStore(t)
	running := map[string]bool{"application_1_0001": true}
	c := Collection{Ended: func(app string) bool { return !running[app] }, Now: m.now.Add(30 * time.Minute), Age: time.Hour}
	if out, err := s.GC(t.Context(), c); err != nil || len(out.Apps)+len(out.Programs) != 0 || out.Kept != 3 {
		t.Errorf("young things: %+v, %v", out, err)
	}
	c.Now, c.DryRun = m.now.Add(2*time.Hour), true
	before := len(m.has("/"))
	out, err := s.GC(t.Context(), c)
	if err != nil || len(out.Apps) != 1 || len(out.Programs) != 2 || out.Kept != 1 || len(m.has("/")) != before {
		t.Errorf("dry run: %+v, %v", out, err)
	}
	c.DryRun = false
	out, err = s.GC(t.Context(), c)
	if err != nil || len(out.Apps) != 1 || path.Base(out.Apps[0].Path) != "application_1_0002" || len(out.Programs) != 2 || out.Bytes != int64(len("two")+len("three")) {
		t.Errorf("took %+v, %v", out, err)
	}
	if left := strings.Join(m.has("/user/alice/.heddle/bin"), " "); left != sums[0] {
		t.Errorf("programs left: %s", left)
	}
	delete(running, "application_1_0001")
	if _, err := s.GC(t.Context(), c); err != nil || len(m.has("/user/alice/.heddle/bin"))+len(m.has("/user/alice/.heddle/apps")) != 0 {
		t.Errorf("left %v, %v", m.has("/user/alice/.heddle"), err)
	}
}

// TestGCRace has an application name the program while gc is about to take it away.
func TestGCRace(t *testing.T) {
	for _, when := range []string{"rename", "remove"} {
		s, m, sums := gcStore(t)
		file := s.binDir() + "/" + sums[2]
		was := m.files[file].Info
		m.hook = func(call, name string) error {
			if call == when && strings.HasSuffix(name, sums[2]) {
				m.hook = nil
				staged, err := s.StageApplication(t.Context(), Application{ID: "application_1_0009", Exe: program(t, "three")}, nil)
				if err != nil || staged.Reused != (when == "rename") {
					t.Errorf("at %s: %+v, %v", when, staged, err)
				}
			}
			return nil
		}
		c := Collection{Ended: func(app string) bool { return app != "application_1_0009" }, Now: m.now.Add(2 * time.Hour), Age: time.Hour}
		if _, err := s.GC(t.Context(), c); err != nil {
			t.Errorf("at %s: %v", when, err)
		}
		if now, ok := m.files[file]; !ok || now.Info != was {
			t.Errorf("at %s: the program is %+v, want %+v", when, now, was)
		}
		for name := range m.files {
			if strings.Contains(name, asidePrefix) {
				t.Errorf("at %s: left %s", when, name)
			}
		}
	}
}
