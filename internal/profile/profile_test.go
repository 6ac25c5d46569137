package profile

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTake takes each kind, and knows it by how it begins.
func TestTake(t *testing.T) {
	for _, x := range []struct {
		kind  Kind
		begin string
	}{{CPU, "\x1f\x8b"}, {Heap, "\x1f\x8b"}, {Trace, "go 1."}, {Stacks, "goroutine "}} {
		data, err := Take(t.Context(), x.kind, 50*time.Millisecond)
		if err != nil || !bytes.HasPrefix(data, []byte(x.begin)) {
			t.Errorf("%s: %.20q, %v", x.kind, data, err)
		}
	}
}

func hold(secret int, ready, done chan struct{}) { close(ready); <-done; _ = secret }

// TestNoArguments: what functions were called with is not told.
func TestNoArguments(t *testing.T) {
	ready, done := make(chan struct{}), make(chan struct{})
	go hold(0x5ec4e7, ready, done)
	<-ready
	defer close(done)
	data, err := Take(t.Context(), Stacks, 0)
	if text := string(data); err != nil || !strings.Contains(text, "profile.hold(…)") || strings.Contains(text, "5ec4e7") || strings.Contains(text, "(0x") {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestRefused(t *testing.T) {
	for _, x := range []struct {
		kind Kind
		d    time.Duration
	}{{"keys", 0}, {CPU, 0}, {CPU, time.Hour}, {Trace, time.Minute}, {CPU, -1}} {
		if _, err := Take(t.Context(), x.kind, x.d); err == nil {
			t.Errorf("%s for %s is taken", x.kind, x.d)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Take(ctx, CPU, time.Minute); err == nil {
		t.Error("a profile goes on when the process ends")
	}
	b := &bounded{}
	if _, err := b.Write(make([]byte, MaxSize+1)); !errors.Is(err, ErrTooLarge) || !errors.Is(b.wait(t.Context(), time.Hour), ErrTooLarge) {
		t.Errorf("too much: %v", err)
	}
}
