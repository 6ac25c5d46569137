package token

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// Delegation is what the identifier of a delegation token says. It is for people; the server alone judges it.
type Delegation struct {
	Owner, Renewer, RealUser string
	Issued, Max              time.Time // when it was made, and when it ends for good
	Sequence                 int64
}

// Delegation reads the identifier of a delegation token of HDFS, of a key server or the ResourceManager, or of another that is written like one of them.
func (t Token) Delegation() (Delegation, error) {
	if t.Kind == KindRM {
		return delegationOfYARN(t.Identifier)
	}
	r := &reader{b: t.Identifier}
	if len(r.b) == 0 || r.b[0] != 0 {
		return Delegation{}, errors.New("cannot read a delegation token: its version is not 0")
	}
	r.b = r.b[1:]
	d := Delegation{Owner: string(r.bytes()), Renewer: string(r.bytes()), RealUser: string(r.bytes())}
	d.Issued, d.Max = time.UnixMilli(r.vint()), time.UnixMilli(r.vint())
	d.Sequence = r.vint()
	if r.err != nil {
		return Delegation{}, fmt.Errorf("cannot read a delegation token: %w", r.err)
	}
	return d, nil
}

// delegationOfYARN reads a message of protobuf, which some versions put a length before.
func delegationOfYARN(b []byte) (Delegation, error) {
	var m pb.YARNDelegationTokenIdentifierProto
	err := proto.Unmarshal(b, &m)
	if r := (&reader{b: b}); err != nil || m.Owner == nil {
		err = proto.Unmarshal(r.bytes(), &m)
		if r.err != nil {
			err = r.err
		}
	}
	if err == nil && m.GetOwner() == "" {
		err = errors.New("it names no owner")
	}
	if err != nil {
		return Delegation{}, fmt.Errorf("cannot read a delegation token of the ResourceManager: %w", err)
	}
	return Delegation{Owner: m.GetOwner(), Renewer: m.GetRenewer(), RealUser: m.GetRealUser(), Issued: time.UnixMilli(m.GetIssueDate()), Max: time.UnixMilli(m.GetMaxDate()),
		Sequence: int64(m.GetSequenceNumber())}, nil
}
