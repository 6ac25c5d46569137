package yarn

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/heddle-stream/heddle/yarnclient/book"
)

// verdict is what one of YARN's exit statuses means.
type verdict struct {
	text  string
	blame bool // it is the agent's doing
}

// verdicts by YARN's own statuses, which are negative, and those of shells and signals that mean something particular under YARN.
var verdicts = map[int]verdict{
	-1000: {"its container could not be started", true},
	-100:  {"YARN took its container back, or lost its node", false},
	-101:  {"the disks of its node failed", false},
	-102:  {"its container was preempted", false},
	-103:  {"it used more virtual memory than its node allows: a Go process maps 1.3 GB and more, so raise agent.memory, or have yarn.nodemanager.vmem-check-enabled set to false", true},
	-104:  {"it used more memory than its container has: raise agent.memory", true},
	-105:  {"it was stopped by the ApplicationMaster", false},
	-106:  {"it was stopped by the ResourceManager", false},
	-107:  {"the application was over", false},
	-108:  {"the scheduler of its node stopped it", false},
	-109:  {"it wrote more logs than its node allows", true},
	126:   {"its program may not be executed: the node's local directories may be mounted noexec, or a policy forbids uploaded programs", true},
	137:   {"it was killed by signal 9: the kernel may have run out of memory for the container; raise agent.memory", true},
	143:   {"it was ended by signal 15", true},
}

// judge says how a container ended and whether the agent is to blame.
func judge(d book.Done, memoryMB int64) (reason string, blame bool) {
	v, known := verdicts[d.ExitStatus]
	switch {
	case known:
	case d.ExitStatus == 0:
		v = verdict{"it ended (exit status 0)", true}
	case d.ExitStatus > 128 && d.ExitStatus < 160:
		v = verdict{fmt.Sprintf("killed by signal %d", d.ExitStatus-128), true}
	default:
		v = verdict{fmt.Sprintf("exit status %d", d.ExitStatus), true}
	}
	text := v.text
	switch d.ExitStatus {
	case -103, -104:
		if m := usage.FindStringSubmatch(d.Diagnostics); m != nil {
			return fmt.Sprintf("%s (it used %s of %s of memory, %s of %s of virtual memory; its container has %d MB)", text, m[1], m[2], m[3], m[4], memoryMB), v.blame
		}
		text += fmt.Sprintf(" (its container has %d MB)", memoryMB)
	case 137:
		text += fmt.Sprintf(" (its container has %d MB)", memoryMB)
	}
	if diag := strings.Join(strings.Fields(d.Diagnostics), " "); diag != "" && diag != "N/A" {
		text += "; YARN says: " + shorten(diag, 1000)
	}
	return text, v.blame
}

// usage finds in a NodeManager's words what a container used. The rest of them is a list of its processes.
var usage = regexp.MustCompile(`Current usage: ([0-9.]+ ?[A-Z]+) of ([0-9.]+ ?[A-Z]+) physical memory used; ([0-9.]+ ?[A-Z]+) of ([0-9.]+ ?[A-Z]+) virtual memory used`)

func shorten(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
