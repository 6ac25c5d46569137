package yarn

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/heddle-stream/heddle/internal/lastlines"
	"github.com/heddle-stream/heddle/yarnclient/book"
)

// verdict is what one of YARN's exit statuses means.
type verdict struct {
	text  string
	blame bool   // it is the agent's doing
	fix   string // what helps; "": nothing that is known
}

// verdicts by YARN's own statuses, which are negative, and those of shells and signals that mean something particular under YARN.
var verdicts = map[int]verdict{
	-1000: {"its container could not be started", true, "what YARN says tells what is wrong with the node, or with the files that the container needs"},
	-100:  {"YARN took its container back, or lost its node", false, ""},
	-101:  {"the disks of its node failed", false, "have the node's disks looked at; agents.host-failures keeps agents off such nodes"},
	-102:  {"its container was preempted", false, "use a queue whose containers are not preempted, or have the queue's share raised"},
	-103:  {"it used more virtual memory than its node allows: a Go process maps 1.3 GB and more, so raise agent.memory, or have yarn.nodemanager.vmem-check-enabled set to false", true, "raise agent.memory, or have yarn.nodemanager.vmem-check-enabled set to false"},
	-104:  {"it used more memory than its container has: raise agent.memory", true, "raise agent.memory"},
	-105:  {"it was stopped by the ApplicationMaster", false, ""},
	-106:  {"it was stopped by the ResourceManager", false, ""},
	-107:  {"the application was over", false, ""},
	-108:  {"the scheduler of its node stopped it", false, ""},
	-109:  {"it wrote more logs than its node allows", true, "lower log.level, log.max-size or log.max-files"},
	126:   {"its program may not be executed: the node's local directories may be mounted noexec, or a policy forbids uploaded programs", true, "have programs allowed in the nodes' local directories, or use one that is installed on the nodes (yarn.binary)"},
	137:   {"it was killed by signal 9: the kernel may have run out of memory for the container; raise agent.memory", true, "raise agent.memory"},
	143:   {"it was ended by signal 15", true, "see the agent's log: something outside asked it to end"},
}

// verdictOn is what an exit status means.
func verdictOn(status int) verdict {
	v, known := verdicts[status]
	switch {
	case known:
		return v
	case status == 0:
		return verdict{"it ended (exit status 0)", true, ""}
	case status > 128 && status < 160:
		return verdict{fmt.Sprintf("killed by signal %d", status-128), true, ""}
	}
	return verdict{fmt.Sprintf("exit status %d", status), true, "see the agent's log"}
}

// told is what YARN says of an end, in one line.
func told(d book.Done) string {
	if diag := strings.Join(strings.Fields(d.Diagnostics), " "); diag != "N/A" {
		return shorten(diag, 1000)
	}
	return ""
}

// judge says how a container ended and whether the agent is to blame.
func judge(d book.Done, memoryMB int64) (reason string, blame bool) {
	v := verdictOn(d.ExitStatus)
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
	if said := told(d); said != "" {
		text += "; YARN says: " + said
	}
	return text, v.blame
}

// usage finds in a NodeManager's words what a container used. The rest of them is a list of its processes.
var usage = regexp.MustCompile(`Current usage: ([0-9.]+ ?[A-Z]+) of ([0-9.]+ ?[A-Z]+) physical memory used; ([0-9.]+ ?[A-Z]+) of ([0-9.]+ ?[A-Z]+) virtual memory used`)

// tailMark begins the end of what a container wrote, in a NodeManager's words on one that failed. One that was killed gets none.
var tailMark = regexp.MustCompile(`(?m)^Last \d+ bytes of (?:std)?err\S* :\n`)

// stamp begins what a NodeManager says itself.
var stamp = regexp.MustCompile(`(?m)^\[[^\]\n]*\](?:Container|Exception|Killed|Process)`)

// wrote are the last lines that a container wrote to its standard error, as far as a NodeManager's words hold them.
func wrote(diagnostics string, most int) []string {
	marks := tailMark.FindAllStringIndex(diagnostics, -1)
	if len(marks) == 0 {
		return nil
	}
	text := diagnostics[marks[len(marks)-1][1]:]
	if end := stamp.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	text = strings.Trim(strings.ToValidUTF8(text, "?"), "\n")
	if text == "" {
		return nil
	}
	return lastlines.Cut(strings.Split(text, "\n"), most)
}

func shorten(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
