// Package yarnid holds YARN's names of applications, attempts, containers and nodes, as text and as messages.
package yarnid

import (
	"fmt"
	"strconv"
	"strings"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// Application is application_<timestamp>_<number>.
type Application struct {
	Cluster int64 // when the ResourceManager that issued it started, in milliseconds
	Number  int32
}

// Attempt is one run of an application's master: appattempt_<timestamp>_<application>_<number>.
type Attempt struct {
	App    Application
	Number int32
}

// Container is container_[e<epoch>_]<timestamp>_<application>_<attempt>_<number>. Number holds the epoch above its 40th bit.
type Container struct {
	Attempt Attempt
	Number  int64
}

const epochShift = 40

func (a Application) String() string { return fmt.Sprintf("application_%d_%04d", a.Cluster, a.Number) }

func (a Attempt) String() string {
	return fmt.Sprintf("appattempt_%d_%04d_%06d", a.App.Cluster, a.App.Number, a.Number)
}

func (c Container) String() string {
	epoch := ""
	if e := c.Number >> epochShift; e > 0 {
		epoch = fmt.Sprintf("e%02d_", e)
	}
	return fmt.Sprintf("container_%s%d_%04d_%02d_%06d", epoch, c.Attempt.App.Cluster, c.Attempt.App.Number, c.Attempt.Number, c.Number&(1<<epochShift-1))
}

// ParseApplication reads an application's name.
func ParseApplication(s string) (Application, error) {
	n, ok := numbers(s, "application", 2)
	if !ok || n[1] > 1<<31-1 {
		return Application{}, fmt.Errorf("cannot read %q: it is not application_<timestamp>_<number>", s)
	}
	return Application{n[0], int32(n[1])}, nil
}

// ParseAttempt reads an attempt's name.
func ParseAttempt(s string) (Attempt, error) {
	n, ok := numbers(s, "appattempt", 3)
	if !ok || n[1] > 1<<31-1 || n[2] > 1<<31-1 {
		return Attempt{}, fmt.Errorf("cannot read %q: it is not appattempt_<timestamp>_<application>_<number>", s)
	}
	return Attempt{Application{n[0], int32(n[1])}, int32(n[2])}, nil
}

// ParseContainer reads a container's name.
func ParseContainer(s string) (Container, error) {
	bad := fmt.Errorf("cannot read %q: it is not container_[e<epoch>_]<timestamp>_<application>_<attempt>_<number>", s)
	rest, ok := strings.CutPrefix(s, "container_")
	if !ok {
		return Container{}, bad
	}
	var epoch int64
	if e, ok := strings.CutPrefix(rest, "e"); ok {
		digits, after, found := strings.Cut(e, "_")
		n, err := strconv.ParseUint(digits, 10, 22)
		if !found || err != nil {
			return Container{}, bad
		}
		epoch, rest = int64(n), after
	}
	n, ok := numbers("container_"+rest, "container", 4)
	if !ok || n[1] > 1<<31-1 || n[2] > 1<<31-1 || n[3] >= 1<<epochShift {
		return Container{}, bad
	}
	return Container{Attempt{Application{n[0], int32(n[1])}, int32(n[2])}, epoch<<epochShift | n[3]}, nil
}

// numbers splits prefix_1_2_3 into its count numbers.
func numbers(s, prefix string, count int) ([]int64, bool) {
	p := strings.Split(s, "_")
	if len(p) != count+1 || p[0] != prefix {
		return nil, false
	}
	out := make([]int64, count)
	for i := range out {
		n, err := strconv.ParseUint(p[i+1], 10, 63)
		if err != nil {
			return nil, false
		}
		out[i] = int64(n)
	}
	return out, true
}

// Proto returns the name as messages carry it.
func (a Application) Proto() *pb.ApplicationIdProto {
	return &pb.ApplicationIdProto{Id: &a.Number, ClusterTimestamp: &a.Cluster}
}

// Proto returns the name as messages carry it.
func (a Attempt) Proto() *pb.ApplicationAttemptIdProto {
	return &pb.ApplicationAttemptIdProto{ApplicationId: a.App.Proto(), AttemptId: &a.Number}
}

// Proto returns the name as messages carry it.
func (c Container) Proto() *pb.ContainerIdProto {
	return &pb.ContainerIdProto{AppAttemptId: c.Attempt.Proto(), Id: &c.Number}
}

// ApplicationOf reads a message's name.
func ApplicationOf(p *pb.ApplicationIdProto) Application {
	return Application{p.GetClusterTimestamp(), p.GetId()}
}

// AttemptOf reads a message's name.
func AttemptOf(p *pb.ApplicationAttemptIdProto) Attempt {
	return Attempt{ApplicationOf(p.GetApplicationId()), p.GetAttemptId()}
}

// ContainerOf reads a message's name.
func ContainerOf(p *pb.ContainerIdProto) Container {
	return Container{AttemptOf(p.GetAppAttemptId()), p.GetId()}
}

// NodeOf returns a node's name, the host:port of its NodeManager.
func NodeOf(p *pb.NodeIdProto) string {
	host := p.GetHost()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(p.GetPort()))
}
