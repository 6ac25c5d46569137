//go:build !linux

package local

import "syscall"

// dieWithParent has no means here: an orphaned agent ends when its session breaks.
func dieWithParent() *syscall.SysProcAttr { return nil }
