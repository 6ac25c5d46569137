package cli

import (
	"fmt"
	"log/slog"
	"syscall"

	"github.com/heddle-stream/heddle/conf"
)

// shut keeps the memory of this process, which holds keys and tokens, from core files, and from debuggers and the like of other processes of its user.
// Processes that it starts have no core files either.
func shut() error {
	err := limitCore(func(l *syscall.Rlimit) { l.Cur = 0 })
	if err == nil {
		err = setDumpable(false)
	}
	if err != nil {
		return fmt.Errorf("cannot turn core files off, which would hold secrets: %w", err)
	}
	return nil
}

// reopen undoes shut, as far as the host lets core files be.
func reopen() error {
	if err := limitCore(func(l *syscall.Rlimit) { l.Cur = l.Max }); err != nil {
		return err
	}
	return setDumpable(true)
}

func limitCore(set func(*syscall.Rlimit)) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil {
		return err
	}
	set(&l)
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &l)
}

// settle does what the configuration says of a role's process itself, and returns its logger.
func (s *session) settle(c *conf.Config) *slog.Logger {
	log := s.logger(c)
	if c.Bool("debuggable") {
		log.Warn("debuggers and core files see this process's memory, which holds secrets, since the option debuggable is set", "error", reopen())
	}
	return log
}
