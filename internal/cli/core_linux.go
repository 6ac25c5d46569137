package cli

import (
	"bytes"
	"os"
	"syscall"
)

// setDumpable says whether the kernel lets others of the same user read this process's memory, and hands it to programs that collect core files,
// which the limit on their size does not reach. A process that was started by a debugger stays as it is: its memory has been read already.
func setDumpable(yes bool) error {
	if !yes && traced() {
		return nil
	}
	var n uintptr
	if yes {
		n = 1
	}
	if _, _, e := syscall.Syscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, n, 0); e != 0 {
		return e
	}
	return nil
}

// traced reports whether a debugger follows this process (proc(5), TracerPid).
func traced() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && bytes.Contains(status, []byte("TracerPid:")) && !bytes.Contains(status, []byte("TracerPid:\t0\n"))
}
