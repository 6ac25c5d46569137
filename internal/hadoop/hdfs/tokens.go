package hdfs

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// DelegationToken fetches a token by which containers can do without a ticket. renewer is who may renew it: the ResourceManager's principal. The
// token's service is left to the caller. A cluster without security gives none.
func (f *FS) DelegationToken(ctx context.Context, renewer string) (t token.Token, ok bool, err error) {
	resp := &pb.GetDelegationTokenResponseProto{}
	if err := f.rpc.Call(ctx, "getDelegationToken", &pb.GetDelegationTokenRequestProto{Renewer: &renewer}, resp); err != nil {
		return token.Token{}, false, fmt.Errorf("cannot get a delegation token for HDFS: %w", err)
	}
	if resp.Token == nil {
		return token.Token{}, false, nil
	}
	t = token.FromProto(resp.Token)
	if len(t.Identifier) == 0 || t.Kind != token.KindHDFS {
		return token.Token{}, false, errors.New("cannot get a delegation token for HDFS: what the NameNode sent is none")
	}
	return t, true, nil
}

// RenewToken prolongs a token, which its renewer may, and returns until when.
func (f *FS) RenewToken(ctx context.Context, t token.Token) (time.Time, error) {
	resp := &pb.RenewDelegationTokenResponseProto{}
	if err := f.rpc.Call(ctx, "renewDelegationToken", &pb.RenewDelegationTokenRequestProto{Token: t.Proto()}, resp); err != nil {
		return time.Time{}, fmt.Errorf("cannot renew the delegation token for HDFS: %w", err)
	}
	return time.UnixMilli(int64(resp.GetNewExpiryTime())), nil
}

// CancelToken ends a token.
func (f *FS) CancelToken(ctx context.Context, t token.Token) error {
	if err := f.rpc.Call(ctx, "cancelDelegationToken", &pb.CancelDelegationTokenRequestProto{Token: t.Proto()}, &pb.CancelDelegationTokenResponseProto{}); err != nil {
		return fmt.Errorf("cannot cancel the delegation token for HDFS: %w", err)
	}
	return nil
}
