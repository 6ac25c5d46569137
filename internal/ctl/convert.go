package ctl

import (
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// PBExecution returns id in the wire's form.
func PBExecution(id cluster.ExecutionID) *ctlpb.ExecutionID {
	return &ctlpb.ExecutionID{Vertex: int32(id.Vertex), Subtask: int32(id.Subtask), Attempt: int32(id.Attempt)}
}

// Execution is the inverse of PBExecution; a missing id is the zero one, which exists, so check for nil where it matters.
func Execution(id *ctlpb.ExecutionID) cluster.ExecutionID {
	return cluster.ExecutionID{Vertex: int(id.GetVertex()), Subtask: int(id.GetSubtask()), Attempt: int(id.GetAttempt())}
}

// PBFailure returns f in the wire's form: texts that are too long for it are cut.
func PBFailure(f cluster.Failure) *ctlpb.Error {
	f = f.Fit()
	return &ctlpb.Error{Kind: int32(f.Kind), Message: f.Message, Operator: f.Operator, Peer: f.Peer, Logged: f.Logged}
}

// Failure is the inverse of PBFailure. A kind that this version does not know is Internal; a failure without a word is named so.
func Failure(e *ctlpb.Error) cluster.Failure {
	f := cluster.Failure{Message: e.GetMessage(), Operator: e.GetOperator(), Peer: e.GetPeer(), Logged: e.GetLogged()}
	if k := e.GetKind(); k >= 0 && k <= int32(cluster.Lost) {
		f.Kind = cluster.ErrorKind(k)
	}
	if f.Message == "" {
		f.Message = "no reason given"
	}
	return f.Fit()
}

// State returns the task state of an update, and whether the number stands for one.
func State(n int32) (cluster.TaskState, bool) {
	if n < 0 || n > int32(cluster.Failed) {
		return cluster.Failed, false
	}
	return cluster.TaskState(n), true
}
