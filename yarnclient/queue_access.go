package yarnclient

import (
	"context"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// QueueAccess is what we may do with a queue.
type QueueAccess struct {
	Queue      string // its path; its last name alone, from ResourceManagers before 3.3
	Submit     bool
	Administer bool // see and end everybody's applications
}

// QueueAccess returns what we may do with each queue, as the ResourceManager judges it. Its web service tells that to administrators only.
func (r *RPC) QueueAccess(ctx context.Context) ([]QueueAccess, error) {
	var resp pb.GetQueueUserAclsInfoResponseProto
	if err := r.call(ctx, "learn which queues we may use", "getQueueUserAcls", &pb.GetQueueUserAclsInfoRequestProto{}, &resp); err != nil {
		return nil, err
	}
	var out []QueueAccess
	for _, q := range resp.QueueUserAcls {
		a := QueueAccess{Queue: q.GetQueueName()}
		for _, acl := range q.UserAcls {
			switch acl {
			case pb.QueueACLProto_QACL_SUBMIT_APPLICATIONS:
				a.Submit = true
			case pb.QueueACLProto_QACL_ADMINISTER_QUEUE:
				a.Administer = true
			}
		}
		out = append(out, a)
	}
	return out, nil
}
