package testbed

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestPomNamesEveryArtifact(t *testing.T) {
	pom, err := pomOf("x", []Artifact{"g:a:1", "h:b:2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<groupId>g</groupId><artifactId>a</artifactId><version>1</version>", "<artifactId>b</artifactId>"} {
		if !strings.Contains(pom, want) {
			t.Errorf("pom lacks %s:\n%s", want, pom)
		}
	}
	if _, err := pomOf("x", []Artifact{"g:a"}); err == nil {
		t.Error("pom of an artifact without version: got no error")
	}
}

func TestProcessLife(t *testing.T) {
	b := New(t)
	p := b.Start(Spec{Name: "echo", Path: "sh", Args: []string{"-c", "echo hello; exit 3"}})
	if code := p.Wait(10 * time.Second); code != 3 {
		t.Errorf("exit code: got %d, want 3", code)
	}
	if got := p.Output(); got != "hello\n" {
		t.Errorf("output: got %q", got)
	}
	q := b.Start(Spec{Name: "cat", Path: "sh", Args: []string{"-c", "sleep 1000 & wait"}})
	q.Kill()
	if q.Running() {
		t.Error("a killed process still runs")
	}
	if err := syscall.Kill(-q.Pid(), 0); err == nil {
		b.Eventually("the whole group is gone", time.Minute, func() error {
			if syscall.Kill(-q.Pid(), 0) == nil {
				return syscall.EAGAIN
			}
			return nil
		})
	}
}
