package token

import (
	"errors"
	"fmt"
	"time"
)

// Delegation is what the identifier of a delegation token says. It is for people; the server alone judges it.
type Delegation struct {
	Owner, Renewer, RealUser string
	Issued, Max              time.Time // when it was made, and when it ends for good
	Sequence                 int64
}

// Delegation reads the identifier of an HDFS_DELEGATION_TOKEN, or of another that is written like it.
func (t Token) Delegation() (Delegation, error) {
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
