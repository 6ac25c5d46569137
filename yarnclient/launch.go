package yarnclient

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// Launch is what runs in a container, as RPC carries it: to the ResourceManager for a master, to a NodeManager for what that starts.
type Launch struct {
	Command            string
	Env                map[string]string
	Resources          []LocalResource
	Credentials        token.Credentials
	ViewACL, ModifyACL string
}

// Proto returns the message.
func (l Launch) Proto() (*pb.ContainerLaunchContextProto, error) {
	lc := &pb.ContainerLaunchContextProto{Command: []string{l.Command}, Tokens: l.Credentials.Append(nil)}
	for _, k := range slices.Sorted(maps.Keys(l.Env)) {
		v := l.Env[k]
		lc.Environment = append(lc.Environment, &pb.StringStringMapProto{Key: &k, Value: &v})
	}
	for _, r := range l.Resources {
		lr, err := r.proto()
		if err != nil {
			return nil, err
		}
		lc.LocalResources = append(lc.LocalResources, &pb.StringLocalResourceMapProto{Key: &r.Name, Value: lr})
	}
	for _, a := range []struct {
		typ pb.ApplicationAccessTypeProto
		who string
	}{{pb.ApplicationAccessTypeProto_APPACCESS_VIEW_APP, l.ViewACL}, {pb.ApplicationAccessTypeProto_APPACCESS_MODIFY_APP, l.ModifyACL}} {
		if a.who != "" {
			lc.Application_ACLs = append(lc.Application_ACLs, &pb.ApplicationACLMapProto{AccessType: &a.typ, Acl: &a.who})
		}
	}
	return lc, nil
}

func (r LocalResource) proto() (*pb.LocalResourceProto, error) {
	u, err := url.Parse(r.URI)
	if err != nil || u.Scheme == "" {
		return nil, fmt.Errorf("file %s has no URI but %q", r.Name, r.URI)
	}
	// No port is -1; 0 would become part of the address.
	loc := &pb.URLProto{Scheme: &u.Scheme, Port: proto.Int32(-1), File: &u.Path}
	if h := u.Hostname(); h != "" {
		loc.Host = &h
	}
	if p, err := strconv.Atoi(u.Port()); err == nil {
		loc.Port = proto.Int32(int32(p))
	}
	typ, vis := pb.LocalResourceTypeProto_FILE, pb.LocalResourceVisibilityProto_APPLICATION
	if r.Archive {
		typ = pb.LocalResourceTypeProto_ARCHIVE
	}
	switch r.Visibility {
	case Public:
		vis = pb.LocalResourceVisibilityProto_PUBLIC
	case Private:
		vis = pb.LocalResourceVisibilityProto_PRIVATE
	}
	return &pb.LocalResourceProto{Resource: loc, Size: &r.Size, Timestamp: proto.Int64(r.Modified.UnixMilli()), Type: &typ, Visibility: &vis}, nil
}
