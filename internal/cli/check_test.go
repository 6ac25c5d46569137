package cli

import (
	"os"
	"strings"
	"testing"
)

// TestOptionsAreChecked shows that run and plan refuse, with the same code and before anything starts, options that can't work.
func TestOptionsAreChecked(t *testing.T) {
	w := newWorld(t)
	profiles := w.file("profiles.yaml", "name: p\nslot_groups: { models: { cpu: 2 } }\n"+
		"source: { generator: { count: 10, record: { n: n } } }\nsteps: [{ filter: n > 0, slot_group: models }]\nsink: { discard: {} }\n")
	for _, tt := range []struct {
		options string
		code    int
		want    []string
	}{
		{"--agent.heartbeat-interval 20s", 2, []string{"agent.heartbeat-interval 20s", "agent.heartbeat-timeout 10s", "--agent.heartbeat-interval to 3.333s at most", "--agent.heartbeat-timeout to 1m at least"}},
		{"--agent.heartbeat-timeout 100ms", 2, []string{"agent.heartbeat-interval 1s", "agent.heartbeat-timeout 100ms"}},
		{"--agents.max-cpu 4", 2, []string{"agents.max-cpu limits nothing", "set --agent.cpu"}},
		{"--agents.max-memory 1GiB", 2, []string{"agents.max-memory limits nothing", "set --agent.memory"}},
		{"--parallelism 4 --slots.max 3", 3, []string{"needs 4 slots, but slots.max allows only 1 agent of 2 slots"}},
		{"--parallelism 5 --agents.max-cpu 5 --agent.cpu 2", 3, []string{"needs 5 slots, but agents.max-cpu allows only 2 agents"}},
		{"--parallelism 5 --agents.max-memory 100MiB --agent.memory 40MiB", 3, []string{"agents.max-memory allows only 2 agents"}},
		{"--parallelism 3 --agents.max-resources gpu=1 --agent.resources gpu=1", 3, []string{"agents.max-resources allows only 1 agent"}},
		{"--parallelism 9 --agents.max 2", 3, []string{"needs 9 slots"}},
		{"-D exchange.keepalive-timeout=5s", 2, []string{"exchange.keepalive-timeout (5s) must be longer than exchange.keepalive-interval (10s)"}},
		{"-D exchange.segment-bytes=1028", 2, []string{"exchange.segment-bytes is 1028", "multiple of 8"}},
		{"-D exchange.port=99999", 2, []string{`"99999" is not a port`}},
		{"-D exchange.port=9000,9010-9002", 2, []string{`"9010-9002" is not a port`}},
		{"--web.port 80x", 2, []string{`option web.port: "80x" is not a port`}},
		{"--web.bind [::1", 2, []string{`option web.bind: "[::1" is not an IP address`}},
		{"--web.bind 127.0.0.1:8080", 2, []string{`"127.0.0.1:8080" is not an IP address`, "goes into web.port"}},
		{"--appmaster.bind http//host", 2, []string{`option appmaster.bind: "http//host" is neither`}},
		{"-D exchange.bind=::1::", 2, []string{`option exchange.bind: "::1::" is not an IP address`}},
		{"--agent.resources gpu", 2, []string{"agent.resources"}},
		{"--agent.resources gpu=-1", 2, []string{"agent.resources"}},
		{"--agent.resources gpu=99999999999999999999", 2, []string{"agent.resources"}},
		{profiles + " --agent.cpu 1", 3, []string{"models"}},
		{profiles + " --agent.cpu 2 --parallelism 4 --agents.max-cpu 4", 3, []string{"cannot place the job", "agents.max-cpu"}},
	} {
		args := strings.Fields(tt.options)
		if strings.HasPrefix(tt.options, "-") {
			args = append([]string{w.endless()}, args...)
		}
		for _, verb := range []string{"run", "plan"} {
			in := w.start(append([]string{verb}, args...)...)
			in.expect(tt.code, tt.want...)
			if out := in.stdout.String(); out != "" {
				t.Errorf("%s %s printed\n%s", verb, tt.options, out)
			}
		}
	}
	if _, err := os.Stat(w.state); err == nil {
		t.Error("something was started")
	}
	for _, options := range []string{"--parallelism 2 --slots.max 2", "--slots.max 1", "--agent.heartbeat-timeout 3s", "--agents.max-cpu 4 --agent.cpu 2 --parallelism 4", "--target inproc --slots.max 1 --parallelism 4"} {
		w.start(append([]string{"plan", w.endless()}, strings.Fields(options)...)...).expect(0)
	}
	w.start("plan", profiles, "--agent.cpu", "2", "--parallelism", "2", "--agents.max-cpu", "8").expect(0)
}
