package ctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
)

// SecretsFile is the name of the secrets file in an agent's directory.
const SecretsFile = "secrets"

// AgentSecrets is all that an agent must know and nobody else may. It travels as a file that only its owner can read,
// never in the environment or on a command line.
type AgentSecrets struct {
	App         string            `json:"app"`
	Attempt     uint32            `json:"attempt"` // of the ApplicationMaster that starts the agent
	AgentID     cluster.AgentID   `json:"agent_id"`
	ContainerID string            `json:"container_id"`
	MasterAddr  string            `json:"master_addr"` // host:port of the control plane
	Cert        string            `json:"cert"`        // the agent's own, PEM
	Key         string            `json:"key"`
	CA          string            `json:"ca"` // the application's authority, PEM
	ExchangeKey []byte            `json:"exchange_key"`
	Options     map[string]string `json:"options,omitempty"` // values of options that are secrets
	Files       map[string][]byte `json:"files,omitempty"`   // of the application's directory, for an agent that does not see it
}

// Leaf returns the agent's certificate and key.
func (s AgentSecrets) Leaf() pki.Leaf { return pki.Leaf{Cert: []byte(s.Cert), Key: []byte(s.Key)} }

// Write writes s to path, readable by the owner only. A reader sees the old file or the whole new one.
func (s AgentSecrets) Write(path string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("cannot encode the secrets of %s: %w", s.AgentID, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".secrets-*") // mode 0600
	if err != nil {
		return fmt.Errorf("cannot write the secrets of %s: %w", s.AgentID, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("cannot write the secrets of %s: %w", s.AgentID, err)
	}
	return nil
}

// ReadSecrets reads what AgentSecrets.Write wrote. A file that others could read is refused.
func ReadSecrets(path string) (AgentSecrets, error) {
	var s AgentSecrets
	info, err := os.Stat(path)
	if err != nil {
		return s, fmt.Errorf("cannot read the agent's secrets: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return s, fmt.Errorf("cannot use %s: its mode is %v, so others may have read it: %w", path, info.Mode().Perm(), fs.ErrPermission)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("cannot read the agent's secrets: %w", err)
	}
	return ParseSecrets(data)
}

// ParseSecrets decodes the content of a secrets file. Its errors never show a secret.
func ParseSecrets(data []byte) (AgentSecrets, error) {
	var s AgentSecrets
	if err := json.Unmarshal(data, &s); err != nil {
		return AgentSecrets{}, errors.New("cannot decode the agent's secrets: it is not the file that the ApplicationMaster wrote")
	}
	switch {
	case s.AgentID == "":
		return AgentSecrets{}, errors.New("cannot use the agent's secrets: no agent id in it")
	case s.MasterAddr == "":
		return AgentSecrets{}, errors.New("cannot use the agent's secrets: no address of the ApplicationMaster in it")
	case len(s.ExchangeKey) != pki.ExchangeKeySize:
		return AgentSecrets{}, fmt.Errorf("cannot use the agent's secrets: the exchange key has %d bytes, want %d", len(s.ExchangeKey), pki.ExchangeKeySize)
	}
	return s, nil
}
