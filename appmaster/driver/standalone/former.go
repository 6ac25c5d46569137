package standalone

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// joinedFile is where, in the application's directory, it is written down who has joined, for another attempt of the master.
const joinedFile = "joined.json"

// joined is its content.
type joined struct {
	Granted int               `json:"granted"` // agents so far: names are never used twice
	Agents  []cluster.AgentID `json:"agents"`  // that have joined and not ended
}

// recover expects the agents that have joined an earlier attempt. Files to join with that nobody has used are void: they name that attempt.
func (d *Driver) recover() error {
	if d.env.Attempt == 0 {
		return nil
	}
	stale, err := filepath.Glob(filepath.Join(d.env.AppDir, Dir, "agent-*"))
	for _, path := range stale {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("cannot remove the files of an earlier attempt: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(d.env.AppDir, joinedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var was joined
	if err == nil {
		err = json.Unmarshal(data, &was)
	}
	if err != nil {
		return fmt.Errorf("cannot read which agents have joined an earlier attempt: %w", err)
	}
	d.before = was.Granted
	for _, id := range was.Agents {
		d.agents[id] = &ticket{path: filepath.Join(d.env.AppDir, Dir, string(id)), joined: true}
		d.env.Recovered(id, cluster.ContainerID(id), "")
	}
	return nil
}

// note writes down who has joined, if that has changed. The worker calls it.
func (d *Driver) note() {
	d.mu.Lock()
	now, noted := joined{Granted: d.before + d.granted, Agents: []cluster.AgentID{}}, d.noted
	for id, t := range d.agents {
		if t.joined {
			now.Agents = append(now.Agents, id)
		}
	}
	d.noted = true
	d.mu.Unlock()
	if noted {
		return
	}
	slices.Sort(now.Agents)
	path := filepath.Join(d.env.AppDir, joinedFile)
	data, err := json.Marshal(now)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the directory is gone: so is the application
		d.log.Warn("cannot write down which agents have joined: another attempt of the ApplicationMaster would not take them over", "err", err)
	}
}
