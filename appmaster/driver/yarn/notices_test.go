package yarn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster/driver/drivertest"
	"github.com/heddle-stream/heddle/internal/cluster"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

// TestNotices hands on what YARN says of nodes and containers, in terms of hosts and agents.
func TestNotices(t *testing.T) {
	c := yarntest.New(yarntest.Options{})
	defer c.Close()
	d := newDriver(t, c, nil)
	env := drivertest.NewWorld(t.TempDir()).Env()
	granted, said := make(chan cluster.AgentID, 10), make(chan string, 100)
	env.Granted = func(id cluster.AgentID, _ cluster.ContainerID, _ string) { granted <- id }
	env.Draining = func(hosts []string) { said <- "draining " + strings.Join(hosts, ",") }
	env.Reclaim = func(agents []cluster.AgentID, count int) { said <- fmt.Sprintf("reclaim %v %d", agents, count) }
	if err := d.Start(env); err != nil {
		t.Fatal(err)
	}
	d.Ask(2)
	for range 2 {
		next(t, "a grant", granted)
	}
	ids := []yarnid.Container{where(t, c, "agent-1"), where(t, c, "agent-2")}
	expect := func(what string) {
		t.Helper()
		if got := next(t, what, said); got != what {
			t.Errorf("said %q, want %q", got, what)
		}
	}
	c.Decommission(0)
	expect("draining node1")
	c.Decommission(0) // once more
	c.NodeState(1, pb.NodeStateProto_NS_DECOMMISSIONING)
	expect("draining node1,node2")
	c.NodeState(0, pb.NodeStateProto_NS_DECOMMISSIONED)
	expect("draining node2")
	c.NodeState(1, pb.NodeStateProto_NS_RUNNING)
	expect("draining ")
	c.Preempt(ids[0])
	expect("reclaim [agent-1] 0")
	c.PreemptAny(3, 40, ids[1]) // 120 MB are two agents of 64
	expect("reclaim [] 2")
	stop(t, d)
	d.Close()
	if len(said) != 0 {
		t.Errorf("and also said %q", <-said)
	}
}

// TestAgentsFor rounds up: giving back a little less would not do.
func TestAgentsFor(t *testing.T) {
	for _, x := range []struct {
		w    book.Wish
		each int64
		want int
	}{{book.Wish{MemoryMB: 64, Count: 1}, 64, 1}, {book.Wish{MemoryMB: 65, Count: 1}, 64, 2}, {book.Wish{MemoryMB: 32, Count: 5}, 64, 3}, {book.Wish{}, 64, 0}} {
		if got := agentsFor(x.w, x.each); got != x.want {
			t.Errorf("%+v of %d MB each are %d agents, want %d", x.w, x.each, got, x.want)
		}
	}
}

// TestPerNode puts as many agents on a host as it may, with the scheduler's help or without, and no more.
func TestPerNode(t *testing.T) {
	for _, x := range []struct{ constrain, can bool }{{false, false}, {true, false}, {true, true}} {
		c, d, _, n := start(t, yarntest.Options{Nodes: 3, Constraints: x.can}, func(c *Config) { c.PerNode, c.Constrain = 1, x.constrain })
		d.Ask(5)
		for range 3 {
			where(t, c, next(t, "a grant", n.granted))
		}
		hosts := map[string]bool{}
		for _, k := range c.Running() {
			hosts[k.Node] = true
		}
		if len(hosts) != 3 || len(n.granted) != 0 {
			t.Errorf("%+v: agents on %v, and %d more", x, hosts, len(n.granted))
		}
		stop(t, d)
		d.Close()
	}
}

// TestSuspect: once an agent's session broke, the next idle heartbeat is not waited for.
func TestSuspect(t *testing.T) {
	c, d, _, n := start(t, yarntest.Options{}, func(c *Config) { c.Master.Idle, c.Master.Expiry = time.Hour, 3*time.Hour })
	d.Ask(1)
	k := where(t, c, next(t, "a grant", n.granted))
	c.End(k, 137, "")
	d.Suspect("agent-1")
	if e := next(t, "an exit", n.exits); !e.Blame || !strings.Contains(e.Reason, "signal 9") || !strings.Contains(e.Reason, "its container has 64 MB") {
		t.Errorf("exit %+v", e)
	}
	stop(t, d)
	d.Close()
}
