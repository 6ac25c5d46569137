//go:build unix

package heddle

import (
	"errors"
	"os"
	"syscall"
)

// lockFile makes f the caller's until it is closed, and reports whether it is. A file system without locks gives it to everybody.
func lockFile(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
