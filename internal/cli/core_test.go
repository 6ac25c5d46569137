package cli

import (
	"syscall"
	"testing"
)

func TestNoCore(t *testing.T) {
	if err := noCore(); err != nil {
		t.Fatal(err)
	}
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil || l.Cur != 0 {
		t.Errorf("core files of %d bytes, %v", l.Cur, err)
	}
}
