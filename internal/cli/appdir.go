package cli

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/standalone"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/ctl"
)

// Names in an application's directory.
const (
	confFile   = "conf.yaml"      // resolved configuration without secrets
	jobFile    = "job.yaml"       // of a YAML job; else the program is the job
	nameFile   = "job.name"       // how its author calls that file, for errors
	secretFile = "secrets"        // token of the REST API and values of secret options, 0600
	logFile    = "appmaster.log"  // what the ApplicationMaster says
	addrFile   = "appmaster.addr" // where it listens; there once it does
	resultFile = "result.json"    // how the application ended; there once it has
	lockFile   = "lock"           // locked as long as client or ApplicationMaster live
)

// historyDir is the folder of reports in the state directory.
const historyDir = "history"

// unnamedPrefix is before the id in the name of a directory that is being made.
const unnamedPrefix = "new-"

// keptFailures is how many directories of ended applications stay in the state directory.
const keptFailures = 10

// appDir is the directory of one application of this host.
type appDir struct {
	id   string
	path string
}

func (a appDir) file(name string) string { return filepath.Join(a.path, name) }

// started is when the application was created, by its id.
func (a appDir) started() time.Time {
	parts := strings.Split(a.id, "-")
	if len(parts) < 2 {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// secrets is the content of secretFile.
type secrets struct {
	Token   string            `json:"token"`             // of the REST API
	Options map[string]string `json:"options,omitempty"` // values of options marked secret
	Job     string            `json:"job"`               // fingerprint of the graph that the client built
	Keys    json.RawMessage   `json:"keys,omitempty"`    // of the application, where another attempt of its master may need them
}

// stateDir is where the applications of this host live. The last resort, in the directory of temporary files,
// where anybody can make anything, is made here if it is not there, and must be this user's alone.
func (s *session) stateDir(c *conf.Config) (string, error) {
	if dir := c.Text("state-dir"); dir != "" {
		return dir, nil
	}
	if dir := s.env.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "heddle"), nil
	}
	if home := s.env.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "heddle"), nil
	}
	dir := filepath.Join(os.TempDir(), "heddle-"+strconv.Itoa(os.Getuid()))
	if err := ownDir(dir); err != nil {
		return "", precondition(fmt.Errorf("cannot use %s as the state directory: %w", dir, err), "set another with --state-dir DIR, or set HOME")
	}
	return dir, nil
}

// ownDir makes a directory if there is none, and refuses one that another user could have made or may change.
func ownDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return errors.New("it is not a directory")
	case ok && int(stat.Uid) != os.Getuid():
		return fmt.Errorf("it belongs to user %d, not to user %d", stat.Uid, os.Getuid())
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to it (mode %04o)", info.Mode().Perm())
	}
	return nil
}

// createApp makes the directory of a new application and locks it.
// The lock is held until the returned file, and every copy a child has of it, is closed.
//
// The directory gets its name when it is locked: nobody who lists or prunes ever sees it otherwise.
func createApp(stateDir string, now time.Time) (appDir, *os.File, error) {
	const hint = "set another state directory with --state-dir DIR"
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return appDir{}, nil, precondition(fmt.Errorf("cannot create the state directory: %w", err), hint)
	}
	var random [4]byte
	rand.Read(random[:])
	id := fmt.Sprintf("heddle-%d-%s", now.Unix(), hex.EncodeToString(random[:]))
	path, err := filepath.Abs(filepath.Join(stateDir, id))
	if err != nil {
		return appDir{}, nil, precondition(fmt.Errorf("cannot create the application's directory: %w", err), hint)
	}
	unnamed := filepath.Join(filepath.Dir(path), unnamedPrefix+id)
	if err := os.Mkdir(unnamed, 0o700); err != nil {
		return appDir{}, nil, precondition(fmt.Errorf("cannot create the application's directory: %w", err), hint)
	}
	lock, err := lockDir(unnamed)
	if err == nil {
		if err = os.Rename(unnamed, path); err == nil {
			return appDir{id, path}, lock, nil
		}
		lock.Close()
	}
	os.RemoveAll(unnamed)
	return appDir{}, nil, precondition(fmt.Errorf("cannot create the application's directory: %w", err), hint)
}

// lockDir locks an application's directory that nobody else knows.
func lockDir(path string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", lock.Name(), err)
	}
	return lock, nil
}

// alive reports whether the application's client or ApplicationMaster lives: whether its directory is locked.
func (a appDir) alive() bool {
	f, err := os.Open(a.file(lockFile))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// write stores what the roles need: configuration, secrets and the job file, if there is one. absent tells of files that options name and that are not here.
func (a appDir) write(c *conf.Config, fingerprint string, job *jobText) (sec secrets, absent []string, err error) {
	target, _ := c.Option("target")
	options, absent, err := settings(c, target == "standalone") // agents of others start on this host
	if err != nil {
		return secrets{}, nil, precondition(err)
	}
	sec = secrets{Token: rand.Text(), Options: options, Job: fingerprint}
	if c.Int("appmaster.attempts") > 1 {
		keys, err := appmaster.NewKeys(a.id)
		if err == nil {
			sec.Keys, err = keys.Marshal()
		}
		if err != nil {
			return sec, nil, err
		}
	}
	data, err := json.Marshal(sec)
	if err != nil {
		return sec, nil, err
	}
	files := map[string][]byte{confFile: c.AppendYAML(nil), secretFile: data}
	if job != nil {
		files[jobFile], files[nameFile] = job.data, []byte(job.name)
	}
	for name, data := range files {
		if err := os.WriteFile(a.file(name), data, 0o600); err != nil {
			return sec, nil, fmt.Errorf("cannot write the application's directory: %w", err)
		}
	}
	return sec, absent, nil
}

func (a appDir) readSecrets() (secrets, error) {
	var sec secrets
	return sec, a.readJSON(secretFile, &sec)
}

func (a appDir) readJSON(name string, v any) error {
	data, err := os.ReadFile(a.file(name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("cannot read %s: %w", a.file(name), err)
	}
	return nil
}

// dropSecrets removes what lets people and agents in, when the application has ended.
func (a appDir) dropSecrets() {
	for _, pattern := range []string{secretFile, "agents/*/" + ctl.SecretsFile, standalone.Dir + "/*", optionFilesDir + "/*"} {
		files, err := fs.Glob(os.DirFS(a.path), pattern)
		if err != nil {
			continue // what can't be looked into holds nothing for this user
		}
		for _, file := range files {
			os.Remove(a.file(file))
		}
	}
}

// restoreConfig reads back the configuration that the client resolved.
func (a appDir) restoreConfig() (*conf.Config, error) {
	r, err := registry()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(a.file(confFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read the application's configuration: %w", err)
	}
	sec, err := a.readSecrets()
	if err != nil {
		return nil, fmt.Errorf("cannot read the application's secrets: %w", err)
	}
	return restoreConf(r, a.path, a.file(confFile), data, sec.Options)
}

// listApps returns the applications in stateDir, newest first.
func listApps(stateDir string) ([]appDir, error) {
	entries, err := os.ReadDir(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, precondition(fmt.Errorf("cannot list applications: %w", err), "set another state directory with --state-dir DIR")
	}
	var apps []appDir
	for _, e := range entries {
		if a := (appDir{e.Name(), filepath.Join(stateDir, e.Name())}); e.IsDir() && strings.HasPrefix(a.id, "heddle-") && !a.started().IsZero() {
			apps = append(apps, a)
		}
	}
	slices.SortFunc(apps, func(a, b appDir) int {
		return cmp.Or(b.started().Compare(a.started()), strings.Compare(b.id, a.id))
	})
	return apps, nil
}

// findApp returns the application whose id is, or begins or ends with, name; "" is the newest that lives.
func findApp(stateDir, name string) (appDir, error) {
	apps, err := listApps(stateDir)
	if err != nil {
		return appDir{}, err
	}
	var found []appDir
	for _, a := range apps {
		if a.id == name {
			return a, nil
		}
		if name == "" && a.alive() || name != "" && (strings.HasPrefix(a.id, name) || strings.HasSuffix(a.id, name)) {
			found = append(found, a)
		}
	}
	switch {
	case len(found) == 1 || name == "" && len(found) > 0:
		return found[0], nil
	case name == "":
		return appDir{}, precondition(errors.New("no application runs on this host"), "`heddle list --all` shows those that ended")
	case len(found) == 0:
		return appDir{}, precondition(fmt.Errorf("there is no application %q in %s", name, stateDir), "`heddle list --all` shows what there is")
	}
	return appDir{}, usage(fmt.Errorf("%q could be any of %d applications", name, len(found)), "give more of the id; `heddle list --all` shows them")
}

// justEnded is how long the directory of an application that has ended is spared in any case: its client, or who cancelled it,
// may not have read the result yet.
const justEnded = time.Minute

// ended is when an application that does not run any more left its result, or was last heard of.
func (a appDir) ended() time.Time {
	for _, path := range []string{a.file(resultFile), a.path} {
		if info, err := os.Stat(path); err == nil {
			return info.ModTime()
		}
	}
	return time.Time{}
}

// prune removes the oldest directories of applications that have ended, beyond those kept, and the secrets of all:
// an application that was killed could not.
func prune(stateDir string) {
	apps, err := listApps(stateDir)
	if err != nil {
		return
	}
	kept := 0
	for _, a := range apps {
		if a.alive() {
			continue
		}
		ended := a.ended()
		a.dropSecrets()
		if kept++; kept > keptFailures && time.Since(ended) > justEnded {
			os.RemoveAll(a.path)
		}
	}
	unnamed, err := fs.Glob(os.DirFS(stateDir), unnamedPrefix+"*")
	if err != nil {
		return
	}
	for _, name := range unnamed { // of clients that died while they made it
		path := filepath.Join(stateDir, name)
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Minute {
			os.RemoveAll(path)
		}
	}
}
