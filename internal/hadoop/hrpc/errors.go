package hrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// Classes of exceptions that callers decide on.
const (
	ClassStandby       = "org.apache.hadoop.ipc.StandbyException"
	ClassRetriable     = "org.apache.hadoop.ipc.RetriableException"
	ClassObserver      = "org.apache.hadoop.ipc.ObserverRetryOnActiveException"
	ClassNoSuchMethod  = "org.apache.hadoop.ipc.RpcNoSuchMethodException"
	ClassAccessControl = "org.apache.hadoop.security.AccessControlException"
	ClassAuthorization = "org.apache.hadoop.security.authorize.AuthorizationException"
	ClassInvalidToken  = "org.apache.hadoop.security.token.SecretManager$InvalidToken"

	ClassNotRegistered      = "org.apache.hadoop.yarn.exceptions.ApplicationMasterNotRegisteredException"
	ClassAttemptNotFound    = "org.apache.hadoop.yarn.exceptions.ApplicationAttemptNotFoundException"
	ClassInvalidAMRequest   = "org.apache.hadoop.yarn.exceptions.InvalidApplicationMasterRequestException"
	ClassInvalidResource    = "org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException"
	ClassSchedulerInvalid   = "org.apache.hadoop.yarn.exceptions.SchedulerInvalidResoureRequestException"
	ClassInvalidLabel       = "org.apache.hadoop.yarn.exceptions.InvalidLabelResourceRequestException"
	ClassInvalidBlacklist   = "org.apache.hadoop.yarn.exceptions.InvalidResourceBlacklistRequestException"
	ClassInvalidRelease     = "org.apache.hadoop.yarn.exceptions.InvalidContainerReleaseException"
	ClassInvalidContainer   = "org.apache.hadoop.yarn.exceptions.InvalidContainerException"
	ClassNMNotReady         = "org.apache.hadoop.yarn.exceptions.NMNotYetReadyException"
	ClassApplicationUnknown = "org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException"
	ClassContainerUnknown   = "org.apache.hadoop.yarn.exceptions.ContainerNotFoundException"
	ClassYarn               = "org.apache.hadoop.yarn.exceptions.YarnException"
)

// RemoteError is an exception that the server answered with.
type RemoteError struct {
	Addr    string
	Method  string // "" if it concerns the connection
	Class   string // the exception's Java class
	Message string // without the stack trace
	Fatal   bool   // the server closed the connection
}

func (e *RemoteError) Error() string {
	short := e.Class[strings.LastIndexByte(e.Class, '.')+1:]
	what := "talk to"
	if e.Method != "" {
		what = "call " + e.Method + " at"
	}
	return fmt.Sprintf("cannot %s %s: %s: %s", what, e.Addr, short, e.Message)
}

func remoteError(addr, method string, h *pb.RpcResponseHeaderProto) *RemoteError {
	msg := h.GetErrorMsg()
	if i := strings.Index(msg, "\n\tat "); i >= 0 {
		msg = msg[:i]
	}
	msg = strings.TrimSpace(msg)
	// The trace repeats class and message in its first line.
	if first, rest, ok := strings.Cut(msg, "\n"); ok && strings.HasSuffix(rest, first) && strings.HasPrefix(rest, h.GetExceptionClassName()) {
		msg = first
	}
	return &RemoteError{Addr: addr, Method: method, Class: h.GetExceptionClassName(), Message: msg, Fatal: h.GetStatus() == pb.RpcResponseHeaderProto_FATAL}
}

// ClassOf returns the class of the exception that err is or wraps, "" if it is none.
func ClassOf(err error) string {
	if re, ok := errors.AsType[*RemoteError](err); ok {
		return re.Class
	}
	return ""
}

// ConnError is a connection that could not be made or broke.
type ConnError struct {
	Addr string
	Sent bool // the request had been sent, so that it may have been carried out
	Err  error
}

func (e *ConnError) Error() string {
	if e.Sent {
		return fmt.Sprintf("cannot get an answer from %s: %v", e.Addr, e.Err)
	}
	return fmt.Sprintf("cannot connect to %s: %v", e.Addr, e.Err)
}

func (e *ConnError) Unwrap() error { return e.Err }

// AuthError is an authentication that failed on our side: nothing offered fits, or the server's proof is wrong.
type AuthError struct {
	Addr string
	Err  error
}

func (e *AuthError) Error() string {
	return fmt.Sprintf("cannot authenticate to %s: %v", e.Addr, e.Err)
}

func (e *AuthError) Unwrap() error { return e.Err }

// ErrClosed is what calls of a closed client return.
var ErrClosed = errors.New("the RPC client is closed")

var errCallTimeout = errors.New("no answer in time")

// verdict is what to do about a failed call.
type verdict int

const (
	giveUp    verdict = iota
	sameAgain         // the same server, after a pause
	failOver          // the next server
)

func judge(err error, repeatLost bool) verdict {
	if ce, ok := errors.AsType[*ConnError](err); ok {
		if ce.Sent && !repeatLost {
			return giveUp
		}
		return failOver
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return giveUp
	}
	switch ClassOf(err) {
	case ClassStandby, ClassObserver:
		return failOver
	case ClassRetriable:
		return sameAgain
	}
	return giveUp
}
