package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/ship"
)

// Names in the folder of an application's files in a container, beside those in an application's directory.
const (
	bundleDir  = "app"         // the folder, in a container's working directory
	hadoopFile = "hadoop.xml"  // the resolved Hadoop configuration
	launchFile = "launch.json" // what the ApplicationMaster starts agents with
)

// launch is the content of launchFile.
type launch struct {
	User      string  `json:"user"`
	Command   string  `json:"command"`    // of an agent's container
	MemoryMB  int64   `json:"memory_mb"`  // of the ApplicationMaster's container
	VmemRatio float64 `json:"vmem_ratio"` // of virtual memory to memory that nodes allow; 0: they do not look
}

// openStore connects to the staging folder.
func (h *hadoop) openStore() (*ship.Store, *hdfs.FS, error) { return h.openStoreOf("") }

// openStoreOf opens the staging folder of a user, or ours.
func (h *hadoop) openStoreOf(user string) (*ship.Store, *hdfs.FS, error) {
	cfg, err := h.hdfs()
	if err != nil {
		return nil, nil, precondition(err)
	}
	store, f, err := ship.Open(ship.Options{Conf: h.conf, HDFS: cfg, StagingDir: h.staging, Of: user, Owners: h.owners, Public: h.public})
	if err != nil {
		return nil, nil, hdfsError(err)
	}
	return store, f, nil
}

// applicationFiles are what the ApplicationMaster reads.
func applicationFiles(c *conf.Config, h *hadoop, text *jobText, l launch) (map[string][]byte, error) {
	xml, err := ship.HadoopConf(h.conf)
	if err != nil {
		return nil, precondition(err)
	}
	var data bytes.Buffer
	if err := json.NewEncoder(&data).Encode(l); err != nil {
		return nil, err
	}
	files := map[string][]byte{confFile: c.AppendYAML(nil), hadoopFile: xml, launchFile: data.Bytes()}
	if text != nil {
		files[jobFile], files[nameFile] = text.data, []byte(text.name)
	}
	return files, nil
}

// executable is the program to send: where it is, or where it can be read when its file has been removed meanwhile, as `go run` does.
func (e Env) executable() string {
	if _, err := os.Stat(e.Executable); err == nil {
		return e.Executable
	}
	return e.self()
}

// programName is what a program is called in its containers.
func programName(program string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, filepath.Base(program))
	switch {
	case strings.Trim(name, "._") == "" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "default_container_executor"):
		return "heddle"
	case name == bundleDir || name == addrFile || name == resultFile || name == "tmp" || name == "container_tokens" || name == "launch_container.sh":
		return "heddle"
	}
	return name
}

// commandLine is the line for bash that runs a program in a container with arguments. YARN puts it between double quotes, where bash still reads $, ` and \,
// and before that replaces {{NAME}}, <LOG_DIR> and <CPS> in it, so that those in arguments are broken up.
func commandLine(program string, args []string) string {
	var b strings.Builder
	for _, a := range args {
		a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		for _, magic := range []string{"{{", "}}", "<LOG_DIR>", "<CPS>"} {
			a = strings.ReplaceAll(a, magic, magic[:1]+"''"+magic[1:])
		}
		b.WriteString(" " + shellText(a))
	}
	return program + b.String() + " 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"
}

// shellText protects text between double quotes from bash.
func shellText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text)
}
