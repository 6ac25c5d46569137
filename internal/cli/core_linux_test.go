package cli

import (
	"syscall"
	"testing"
)

// dumpable asks the kernel (PR_GET_DUMPABLE in prctl(2)).
func dumpable(t *testing.T) bool {
	t.Helper()
	n, _, e := syscall.Syscall(syscall.SYS_PRCTL, syscall.PR_GET_DUMPABLE, 0, 0)
	if e != 0 {
		t.Fatal(e)
	}
	return n == 1
}
