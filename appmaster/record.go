package appmaster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// announce writes where this ApplicationMaster is, for those who watch the application's directory.
func (m *master) announce(web string) error {
	m.log.Info("the ApplicationMaster is up", "app", m.cfg.App, "control", m.cfg.Advertise, "web", web)
	if m.cfg.AppDir == "" {
		return nil
	}
	return writeJSON(filepath.Join(m.cfg.AppDir, AddrFile), Addr{Web: web, Control: m.cfg.Advertise, PID: os.Getpid(), Attempt: m.cfg.Attempt})
}

// result sums up how the application ended.
func (m *master) result() Result {
	s := m.Snapshot()
	return Result{App: s.App, Job: s.Job, State: s.State, Cause: s.Cause, Started: s.Started, Ended: time.Now(), Vertices: s.Vertices, Warnings: s.Warnings}
}

func (m *master) record(r Result) error {
	if m.cfg.AppDir == "" {
		return nil
	}
	return writeJSON(filepath.Join(m.cfg.AppDir, ResultFile), r)
}

// writeJSON writes a file that is either there whole or not at all.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", filepath.Base(path), err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", filepath.Base(path), err)
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("cannot write %s: %w", filepath.Base(path), err)
	}
	return nil
}
