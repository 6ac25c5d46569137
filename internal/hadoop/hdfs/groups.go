package hdfs

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
)

// groupProtocol is Hadoop's, which NameNodes speak beside their own.
const groupProtocol = "org.apache.hadoop.tools.GetUserMappingsProtocol"

// Groups asks the NameNode for the groups of a user, as the cluster knows them: a host's own tables, or LDAP, which this process may not see.
func Groups(ctx context.Context, cfg Config, user string) ([]string, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	c := hrpc.New(hrpc.Config{Protocol: groupProtocol, Addrs: cfg.NameNodes, Auth: cfg.auths(), Protection: cfg.Security.Protection, Dial: cfg.Dial,
		ConnectTimeout: cfg.Timeout, HandshakeTimeout: cfg.Timeout, CallTimeout: cfg.Timeout, Retry: hrpc.Retry{Attempts: 2 * len(cfg.NameNodes)}})
	defer c.Close()
	// GetGroupsForUserRequestProto is one string, its answer a list of them, both of field 1, as these messages are.
	resp := &fieldmaskpb.FieldMask{}
	if err := c.Call(ctx, "getGroupsForUser", wrapperspb.String(user), resp); err != nil {
		return nil, fmt.Errorf("cannot learn the groups of %q from the NameNode: %w", user, err)
	}
	return resp.GetPaths(), nil
}
