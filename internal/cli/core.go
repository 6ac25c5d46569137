package cli

import "syscall"

// noCore has the kernel write no core file of this process and of those that it starts: their memory holds keys and tokens.
func noCore() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil {
		return err
	}
	l.Cur = 0
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &l)
}
