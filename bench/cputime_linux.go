package bench

import (
	"syscall"
	"time"
	"unsafe"
)

// cpuTime is the processor time of this process so far, to the nanosecond, which getrusage rounds to clock ticks.
func cpuTime() time.Duration {
	const processClock = 2 // CLOCK_PROCESS_CPUTIME_ID
	var ts syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processClock, uintptr(unsafe.Pointer(&ts)), 0) // fails for wrong arguments only
	return time.Duration(ts.Nano())
}
