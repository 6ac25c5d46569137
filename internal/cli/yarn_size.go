package cli

import (
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/yarnclient"
)

// Figures of a Go process in a container.
const (
	leastMemoryMB  = 256  // that a container needs in any case
	mappedMB       = 1330 // of address space that a Go process maps beside its heap
	leastHeapMB    = 400  // that shall be left where virtual memory is counted
	containerSlack = 32   // MiB kept free below a limit of virtual memory
)

// sizes are those of an application's containers.
type sizes struct {
	master, agent yarnclient.Resource
	custom        map[string]int64 // of an agent
	masterCustom  map[string]int64
	ratio         float64 // of virtual memory to memory that nodes allow; 0: they do not look
}

// containerSizes chooses them: what the options say, else the smallest containers of the cluster that will do.
func containerSizes(c *conf.Config, hc *hconf.Conf, most yarnclient.NewApp) (sizes, error) {
	var z sizes
	largest := most.Max
	smallest, err := hc.Int("yarn.scheduler.minimum-allocation-mb", 1024)
	if err != nil {
		return z, err
	}
	checked, err := hc.Bool("yarn.nodemanager.vmem-check-enabled", true)
	if err != nil {
		return z, err
	}
	if checked {
		if z.ratio, err = hc.Float("yarn.nodemanager.vmem-pmem-ratio", 2.1); err != nil {
			return z, err
		}
	}
	least := max(smallest, leastMemoryMB, vmemLeast(z.ratio))
	z.master = yarnclient.Resource{MemoryMB: or(c.Bytes("appmaster.memory")>>20, least), VCores: int64(c.Int("appmaster.cpu"))}
	z.agent = yarnclient.Resource{
		MemoryMB: or(c.Bytes("agent.memory")>>20, max(least, c.Bytes("exchange.memory")>>20+leastMemoryMB/2)),
		VCores:   or(int64(c.Int("agent.cpu")), min(int64(c.Int("agent.slots")), max(1, largest.VCores))),
	}
	if z.custom, err = customResources(c, "agent.resources"); err != nil {
		return z, usage(err)
	}
	if z.masterCustom, err = customResources(c, "appmaster.resources"); err != nil {
		return z, usage(err)
	}
	if err := z.fit(largest); err != nil {
		return z, err
	}
	return z, z.fitCustom(most.Custom)
}

// vmemLeast is the smallest container, in MB, whose limit of virtual memory leaves a Go process a heap to work with.
func vmemLeast(ratio float64) int64 {
	if ratio <= 0 {
		return 0
	}
	return int64(math.Ceil((mappedMB+leastHeapMB)/ratio/64)) * 64
}

func or(n, otherwise int64) int64 {
	if n > 0 {
		return n
	}
	return otherwise
}

// fit refuses containers that the cluster does not grant.
func (z sizes) fit(largest yarnclient.Resource) error {
	for _, x := range []struct {
		what, memory, cpu string
		r                 yarnclient.Resource
	}{{"the ApplicationMaster", "appmaster.memory", "appmaster.cpu", z.master}, {"an agent", "agent.memory", "agent.cpu", z.agent}} {
		if x.r.MemoryMB > largest.MemoryMB && largest.MemoryMB > 0 {
			return precondition(fmt.Errorf("%s wants a container of %d MB, and the largest that this cluster grants has %d MB", x.what, x.r.MemoryMB, largest.MemoryMB), "lower --"+x.memory)
		}
		if x.r.VCores > largest.VCores && largest.VCores > 0 {
			return precondition(fmt.Errorf("%s wants a container of %d cores, and the largest that this cluster grants has %d", x.what, x.r.VCores, largest.VCores), "lower --"+x.cpu)
		}
	}
	return nil
}

// fitCustom refuses resources that the cluster does not have, which YARN itself would leave out without a word. A cluster that did not say which it has (largest
// is nil) is taken at its word later.
func (z sizes) fitCustom(largest map[string]int64) error {
	if largest == nil {
		return nil
	}
	for _, x := range []struct {
		what, option string
		wanted       map[string]int64
	}{{"the ApplicationMaster", "appmaster.resources", z.masterCustom}, {"an agent", "agent.resources", z.custom}} {
		for _, name := range slices.Sorted(maps.Keys(x.wanted)) {
			most, ok := largest[name]
			if !ok {
				return precondition(fmt.Errorf("this cluster has no resource %s, which %s wants", name, x.what), "it has "+kindsOf(largest)+"; change --"+x.option)
			}
			if n := x.wanted[name]; n > most {
				return precondition(fmt.Errorf("%s wants a container with %d of %s, and the most that this cluster grants is %d", x.what, n, name, most), "lower it in --"+x.option)
			}
		}
	}
	return nil
}

// unsure warns of resources of which it is not known whether the cluster has them.
func (z sizes) unsure(largest map[string]int64) string {
	if largest != nil {
		return ""
	}
	names := map[string]bool{}
	for _, wanted := range []map[string]int64{z.custom, z.masterCustom} {
		for name, n := range wanted {
			if n > 0 {
				names[name] = true
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "this cluster does not say which resources it has: if it lacks " + strings.Join(slices.Sorted(maps.Keys(names)), " or ") + ", YARN leaves that out without a word"
}

// kindsOf names a cluster's kinds of resources.
func kindsOf(custom map[string]int64) string {
	return strings.Join(append([]string{"memory", "cores"}, slices.Sorted(maps.Keys(custom))...), ", ")
}

// customResources reads an option's name=amount pairs.
func customResources(c *conf.Config, option string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, item := range c.List(option) {
		name, amount, ok := strings.Cut(item, "=")
		n, err := strconv.ParseInt(strings.TrimSpace(amount), 10, 64)
		if !ok || err != nil || n < 0 || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("option %s: %q is not NAME=AMOUNT, such as yarn.io/gpu=1", option, item)
		}
		out[strings.TrimSpace(name)] = n
	}
	return out, nil
}

// resolve writes what the cluster decides into the configuration that the roles get.
func (z sizes) resolve(c *conf.Config, plan *jobgraph.Graph) error {
	for name, text := range map[string]string{
		"agent.memory": fmt.Sprintf("%dMiB", z.agent.MemoryMB), "agent.cpu": fmt.Sprint(z.agent.VCores), "appmaster.memory": fmt.Sprintf("%dMiB", z.master.MemoryMB),
	} {
		if err := c.Set(name, text, conf.FromFlag, "target yarn"); err != nil {
			return usage(err)
		}
	}
	if given(c, "agents") {
		return nil
	}
	slots := c.Int("agent.slots")
	return c.Set("agents", fmt.Sprint(max(1, (plan.Slots()+slots-1)/slots)), conf.FromFlag, "target yarn")
}

// fitProcess keeps this process within its container: Go's heap below its memory and its virtual memory, and no more threads at work than it has cores.
func fitProcess(memoryMB, cores int64, ratio float64) {
	limit := memoryMB
	if ratio > 0 {
		limit = min(limit, vmemHeap(memoryMB, ratio, virtualMB())*10/9) // of which LimitMemory takes nine tenths
	}
	agent.LimitMemory(limit)
	if os.Getenv("GOMAXPROCS") == "" && cores > 0 {
		runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), max(2, int(cores))))
	}
}

// vmemHeap is what a limit of virtual memory leaves for a heap, in MB.
func vmemHeap(memoryMB int64, ratio float64, mapped int64) int64 {
	return max(16, int64(ratio*float64(memoryMB))-mapped-containerSlack)
}

// virtualMB is the virtual memory that this process has now.
func virtualMB() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return mappedMB
	}
	pages, _, _ := strings.Cut(string(data), " ")
	n, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return mappedMB
	}
	return n * int64(os.Getpagesize()) >> 20
}
