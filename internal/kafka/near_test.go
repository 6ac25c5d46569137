package kafka

import (
	"slices"
	"testing"
)

func TestNear(t *testing.T) {
	md := &Metadata{Brokers: map[int32]string{1: "b1:9092", 2: "b2:9092", 3: "b3:9092"}, Racks: map[int32]string{1: "r1", 2: "r2", 3: "r1"}}
	for _, c := range []struct {
		p            Partition
		hosts, racks []string
	}{
		{Partition{Leader: 2, InSync: []int32{1, 2, 3}}, []string{"b2"}, []string{"r2", "r1"}},
		{Partition{Leader: -1, InSync: []int32{3}}, nil, []string{"r1"}},
		{Partition{Leader: 9}, nil, nil},
	} {
		if hosts, racks := md.Near(c.p); !slices.Equal(hosts, c.hosts) || !slices.Equal(racks, c.racks) {
			t.Errorf("%+v: near %v and %v, want %v and %v", c.p, hosts, racks, c.hosts, c.racks)
		}
	}
}
