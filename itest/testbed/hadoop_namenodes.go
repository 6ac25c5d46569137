package testbed

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Classes of HDFS.
const (
	nameNodeClass = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	dataNodeClass = "org.apache.hadoop.hdfs.server.datanode.DataNode"
	haAdminClass  = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
)

// Nameservices of a cluster that has more than one NameNode.
const (
	service       = "itest"
	secondService = "second"
)

// nameNodeAt is where a NameNode listens, each a host:port.
type nameNodeAt struct{ rpc, web string }

// nameNodes configures the NameNodes. A pair shares its edits by a folder, and has no ZooKeeper: who is active is the test's decision.
func (h *Hadoop) nameNodes(core, hdfs properties, opt HadoopOptions, port func() string) {
	h.NameNode, h.nameAt = port(), map[string]nameNodeAt{}
	h.HDFS = "hdfs://" + h.NameNode
	one := func(name, suffix, rpc string, args ...string) {
		h.nameAt[name] = nameNodeAt{rpc, port()}
		maps.Copy(hdfs, properties{"dfs.namenode.rpc-address" + suffix: rpc, "dfs.namenode.http-address" + suffix: h.nameAt[name].web})
		h.daemons[name] = &daemon{class: nameNodeClass, user: "hdfs", args: append(args, "-Ddfs.namenode.name.dir=file://"+h.nameDir(name))}
	}
	if !opt.TwoNameNodes && !opt.SecondHDFS {
		one(NameNode, "", h.NameNode)
		core["fs.defaultFS"] = h.HDFS
		return
	}
	of := "-Ddfs.nameservice.id=" + service
	hdfs["dfs.nameservices"] = service
	if opt.TwoNameNodes {
		h.HDFS = "hdfs://" + service
		maps.Copy(hdfs, properties{
			"dfs.ha.namenodes." + service: NameNode + "," + StandbyNameNode, "dfs.ha.fencing.methods": "shell(/bin/true)", "dfs.ha.automatic-failover.enabled": "false",
			"dfs.namenode.shared.edits.dir." + service:      "file://" + h.bed.Dir("hadoop/edits"),
			"dfs.client.failover.proxy.provider." + service: "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider",
			"dfs.ha.tail-edits.period":                      "1s", "dfs.ha.standby.checkpoints": "false",
		})
		for name, rpc := range map[string]string{NameNode: h.NameNode, StandbyNameNode: port()} {
			one(name, "."+service+"."+name, rpc, of, "-Ddfs.ha.namenode.id="+name)
		}
	} else {
		one(NameNode, "."+service, h.NameNode, of)
	}
	core["fs.defaultFS"] = h.HDFS
	if opt.SecondHDFS {
		rpc := port()
		h.Second = "hdfs://" + rpc
		hdfs["dfs.nameservices"] = service + "," + secondService
		one(SecondNameNode, "."+secondService, rpc, "-Ddfs.nameservice.id="+secondService)
	}
}

func (h *Hadoop) nameDir(name string) string { return filepath.Join(h.dir, "nn", name) }

// format makes the namespaces. A standby starts with a copy of what the active one has.
func (h *Hadoop) format(opt HadoopOptions) {
	h.bed.t.Helper()
	for _, name := range []string{NameNode, SecondNameNode} {
		d := h.daemons[name]
		if d == nil {
			continue
		}
		// The DataNode serves several NameNodes of one cluster only.
		if out, err := h.Tool("hdfs", d.class, append(slices.Clone(d.args), "-format", "-clusterid", "itest", "-force", "-nonInteractive")...); err != nil {
			h.bed.t.Fatalf("%v\n%s", err, tail(out, 20))
		}
	}
	if !opt.TwoNameNodes {
		return
	}
	if err := os.CopyFS(h.nameDir(StandbyNameNode), os.DirFS(h.nameDir(NameNode))); err != nil {
		h.bed.t.Fatal(err)
	}
	h.own(h.bed.t, h.nameDir(StandbyNameNode))
}

// Activate makes one of a pair of NameNodes active, neither of which is.
func (h *Hadoop) Activate(name string) {
	h.bed.t.Helper()
	h.bed.Eventually(name+" accepts connections", 2*time.Minute, func() error {
		if d := h.daemons[name]; !d.proc.Running() {
			h.bed.t.Fatalf("%s ended:\n%s", name, d.proc.Tail(30))
		}
		_, err := h.nameNodeState(name)
		return err
	})
	h.haAdmin("-transitionToActive", "--forceactive", name) // else it would ask the other, which may be dead
}

// Failover makes the other of a pair of NameNodes active, in the manner of an administrator.
func (h *Hadoop) Failover(from, to string) {
	h.bed.t.Helper()
	h.haAdmin("-failover", from, to)
}

func (h *Hadoop) haAdmin(args ...string) {
	h.bed.t.Helper()
	if out, err := h.Tool("hdfs", haAdminClass, append([]string{"-ns", service}, args...)...); err != nil {
		h.bed.t.Fatalf("%v: %v\n%s", args, err, tail(out, 20))
	}
}

// ActiveNameNode returns the name of the one that is active of a pair, and of the other.
func (h *Hadoop) ActiveNameNode() (active, standby string) {
	h.bed.t.Helper()
	h.bed.Eventually("a NameNode is active", 2*time.Minute, func() error {
		active, standby = NameNode, StandbyNameNode
		for range 2 {
			if state, err := h.nameNodeState(active); err == nil && state == "active" {
				return nil
			}
			active, standby = standby, active
		}
		return errors.New("none is")
	})
	return active, standby
}

// nameNodeState is what a NameNode says it is: active or standby.
func (h *Hadoop) nameNodeState(name string) (string, error) {
	var j struct {
		Beans []struct{ State string }
	}
	if err := h.jmx(name, "NameNodeStatus", &j); err != nil {
		return "", err
	}
	if len(j.Beans) != 1 || j.Beans[0].State == "" || j.Beans[0].State == "initializing" {
		return "", fmt.Errorf("it is not up: %v", j)
	}
	c, err := net.DialTimeout("tcp", h.nameAt[name].rpc, time.Second) // its web service comes first
	if err != nil {
		return "", err
	}
	return j.Beans[0].State, c.Close()
}

// hdfsReady returns nil when each NameNode that was not killed has the DataNode.
func (h *Hadoop) hdfsReady() error {
	for name := range h.nameAt {
		if h.daemons[name].killed {
			continue
		}
		var j struct {
			Beans []struct{ NumLiveDataNodes int }
		}
		if err := h.jmx(name, "FSNamesystemState", &j); err != nil {
			return err
		}
		if len(j.Beans) != 1 || j.Beans[0].NumLiveDataNodes != 1 {
			return fmt.Errorf("no DataNode has registered with %s", name)
		}
	}
	return nil
}
