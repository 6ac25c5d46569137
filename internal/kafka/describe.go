package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
)

// Operations are what we may do with a topic or a group, as bits by Kafka's numbers of operations.
type Operations uint32

// Operations of Kafka's ACLs.
const (
	OpRead     Operations = 1 << 3
	OpWrite    Operations = 1 << 4
	OpDescribe Operations = 1 << 8
)

// Has reports whether all of want is allowed.
func (o Operations) Has(want Operations) bool { return o&want == want }

// notTold is what brokers without an authorizer's answer, or too old ones, say.
const notTold int32 = -1 << 31

func operations(bits int32) (Operations, bool) {
	if bits == notTold {
		return 0, false
	}
	return Operations(uint32(bits)), true
}

// AllowedTopic is a topic and what we may do with it.
type AllowedTopic struct {
	Err        error // that a broker gave in place of a description: ErrUnknownTopic, ErrDenied and others
	Partitions int
	Allowed    Operations
	Told       bool // Allowed is the broker's word; else it did not say
}

// ErrDenied says that we may not even look at a topic or group.
var ErrDenied = errors.New("access is denied")

// Allowed asks which of the topics there are, what we may do with them, and where the brokers say that they are. No topic is created.
func (c *Client) Allowed(ctx context.Context, topics ...string) (map[string]AllowedTopic, *Metadata, error) {
	var resp *sarama.MetadataResponse
	err := c.any(ctx, func(b *sarama.Broker) (err error) {
		resp, err = b.GetMetadata(&sarama.MetadataRequest{Version: 8, Topics: topics, IncludeTopicAuthorizedOperations: true})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	md := &Metadata{Brokers: map[int32]string{}, Racks: map[int32]string{}, Topics: map[string]Topic{}}
	for _, b := range resp.Brokers {
		md.Brokers[b.ID()] = b.Addr()
	}
	out := map[string]AllowedTopic{}
	for _, t := range resp.Topics {
		a := AllowedTopic{Partitions: len(t.Partitions), Err: denied(t.Err)}
		a.Allowed, a.Told = operations(t.TopicAuthorizedOperations)
		out[t.Name] = a
	}
	return out, md, nil
}

func denied(k sarama.KError) error {
	switch k {
	case sarama.ErrNoError, sarama.ErrLeaderNotAvailable:
		return nil
	case sarama.ErrTopicAuthorizationFailed, sarama.ErrGroupAuthorizationFailed:
		return fmt.Errorf("%w: %w", ErrDenied, k)
	}
	return k
}

// AllowedGroup is a consumer group and what we may do with it.
type AllowedGroup struct {
	Err     error // in place of a description
	State   string
	Members int
	Allowed Operations
	Told    bool
}

// AllowedGroup asks what we may do with a consumer group. It does not become a member; a group that does not exist is described as dead.
func (c *Client) AllowedGroup(ctx context.Context, group string) (AllowedGroup, error) {
	addr, err := c.coordinator(ctx, group)
	if k, ok := errors.AsType[sarama.KError](err); ok {
		return AllowedGroup{Err: denied(k)}, nil
	}
	if err != nil {
		return AllowedGroup{}, err
	}
	var resp *sarama.DescribeGroupsResponse
	err = c.at(ctx, addr, func(b *sarama.Broker) (err error) {
		resp, err = b.DescribeGroups(&sarama.DescribeGroupsRequest{Version: 3, Groups: []string{group}, IncludeAuthorizedOperations: true})
		return err
	})
	if err != nil {
		return AllowedGroup{}, err
	}
	i := slices.IndexFunc(resp.Groups, func(g *sarama.GroupDescription) bool { return g.GroupId == group })
	if i < 0 {
		return AllowedGroup{}, fmt.Errorf("cannot describe group %q: the answer leaves it out", group)
	}
	g := resp.Groups[i]
	a := AllowedGroup{Err: denied(g.Err), State: g.State, Members: len(g.Members)}
	a.Allowed, a.Told = operations(g.AuthorizedOperations)
	return a, nil
}

// Greet connects to one broker, at the address that it, or somebody else, advertised, proves who we are, and asks what it can do.
func (c *Client) Greet(ctx context.Context, addr string) error {
	return c.at(ctx, addr, func(b *sarama.Broker) error {
		_, err := b.ApiVersions(&sarama.ApiVersionsRequest{})
		return err
	})
}
