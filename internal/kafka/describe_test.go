package kafka

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestAllowed asks what a user may do with topics and a group, on a broker that keeps ACLs.
func TestAllowed(t *testing.T) {
	read := func(kind kmsg.ACLResourceType, name string, op kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true}
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(3, "mine", "theirs"), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.User("PLAIN", "alice", "secret", read(kmsg.ACLResourceTypeTopic, "mine", kmsg.ACLOperationRead), read(kmsg.ACLResourceTypeGroup, "g", kmsg.ACLOperationRead)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	k, err := NewClient(Config{Brokers: c.ListenAddrs()[:1], SASL: SASL{Mechanism: "PLAIN", User: "alice", Password: "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	topics, md, err := k.Allowed(t.Context(), "mine", "theirs", "none")
	if err != nil || len(md.Brokers) != 2 {
		t.Fatalf("%v, %v", md, err)
	}
	if a := topics["mine"]; a.Err != nil || a.Partitions != 3 || !a.Told || !a.Allowed.Has(OpRead|OpDescribe) || a.Allowed.Has(OpWrite) {
		t.Errorf("mine: %+v", a)
	}
	for _, name := range []string{"theirs", "none"} {
		if a := topics[name]; !errors.Is(a.Err, ErrDenied) && !errors.Is(a.Err, ErrUnknownTopic) {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if g, err := k.AllowedGroup(t.Context(), "g"); err != nil || g.Err != nil || g.Told && !g.Allowed.Has(OpRead) {
		t.Errorf("group g: %+v, %v", g, err)
	}
	if g, err := k.AllowedGroup(t.Context(), "other"); err != nil || !errors.Is(g.Err, ErrDenied) {
		t.Errorf("group other: %+v, %v", g, err)
	}
	for _, addr := range md.Brokers {
		if err := k.Greet(t.Context(), addr); err != nil {
			t.Error(err)
		}
	}
}
