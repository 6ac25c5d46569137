package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/netstack"
)

// agent is the state of Run.
type agent struct {
	// Immutable.
	cfg    Config
	stack  *netstack.Stack
	net    task.Exchange
	events *mailbox[any] // linkEvent, joined, taskRunning, taskEnded

	// Owned by the loop.
	link       *link // nil while there is no session
	slots      slotTable
	executions map[cluster.ExecutionID]*execution
	order      []cluster.ExecutionID // of deployment
	ordered    []*ctlpb.Task         // parts of an order that is not whole yet
	interval   time.Duration         // of heartbeats
	timeout    time.Duration         // of silence
	rejoin     time.Duration         // how long to look for another attempt of the master; 0: there is none to come
	heard      time.Time             // when the master was last heard of
	seq        uint64                // of the last heartbeat
	early      *time.Timer           // until the next heartbeat out of turn, of which tasks that begin to run have hasty more
	hasty      int
	tokens     uint64     // version of those in use
	certEnds   int64      // when the certificate ends that replaced the first, in seconds; 0: none did
	profiling  bool       // a profile of the process is being taken
	traced     bool       // the spans of the process's start were made
	least      groupMarks // how far groups of sources are
	unasked    string     // why it ends although the master did not ask for it; "" if it does not

	wg sync.WaitGroup // tasks and tries to join
}

// taskRunning is the event that a task has opened its operators.
type taskRunning struct{ e *execution }

// taskEnded is the event that a task's goroutine ends.
type taskEnded struct {
	e      *execution
	result task.Result
	report *ctlpb.TaskReport
}

// LostError says that the agent ended because its master could not be reached any more.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return fmt.Sprintf("lost the ApplicationMaster: %v", e.Err)
}
func (e *LostError) Unwrap() error { return e.Err }

// Run runs an agent until the master shuts it down (nil), refuses it (a *ctl.RefusedError), is another
// application's (a *ctl.StrangerError) or is lost (a *LostError),
// or ctx is cancelled (nil): then it stops its tasks and takes its leave.
func Run(ctx context.Context, cfg Config) (err error) {
	cfg, err = cfg.complete()
	if err != nil {
		return err
	}
	stack, err := netstack.New(cfg.Exchange)
	if err != nil {
		return fmt.Errorf("cannot start the exchange: %w", err)
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	a := &agent{
		cfg: cfg, stack: stack, net: task.NewNetExchange(stack), events: newMailbox[any](),
		slots: make(slotTable, cfg.Slots), executions: map[cluster.ExecutionID]*execution{},
		interval: time.Second, timeout: 10 * time.Second,
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg.Logger.Info("agent starts", "pid", os.Getpid(), "exchange", stack.Addr(), "slots", cfg.Slots)
	reason, err := a.loop(ctx)
	cancel()
	a.shutDown(reason, err)
	return err
}

// loop handles events until the agent must end. reason is for the master.
func (a *agent) loop(ctx context.Context) (reason string, err error) {
	a.join(ctx, ctl.JoinOptions{Wait: a.cfg.JoinTimeout, Firm: a.cfg.Locate == nil})
	tick := time.NewTicker(a.interval)
	defer tick.Stop()
	a.early = time.NewTimer(0)
	defer a.early.Stop()
	for {
		select {
		case <-ctx.Done():
			a.signalled(ctx)
			return a.unasked, nil
		case <-tick.C:
			// What has come already counts before silence is judged: this process may have been the one that slept.
			if done, reason, err := a.apply(ctx, tick); done {
				return reason, err
			}
			a.beat(ctx)
		case <-a.early.C:
			a.beatEarly()
		case <-a.events.signal:
			if done, reason, err := a.apply(ctx, tick); done {
				return reason, err
			}
		}
	}
}

// signalled notes that this process was told to end, if it was. A task may see that before the loop does.
func (a *agent) signalled(ctx context.Context) {
	if ctx.Err() != nil {
		a.unasked = "told to end: " + context.Cause(ctx).Error()
	}
}

// apply handles all events that are there: to the end, so that no task's end among them is missed.
func (a *agent) apply(ctx context.Context, tick *time.Ticker) (done bool, reason string, err error) {
	for _, ev := range a.events.take() {
		if over, why, failed := a.handle(ctx, ev, tick); over && !done {
			done, reason, err = true, why, failed
		}
	}
	return done, reason, err
}

// beat does what is due every heartbeat interval.
func (a *agent) beat(ctx context.Context) {
	a.watchCancelled()
	if a.link == nil {
		return
	}
	if silence := time.Since(a.heard); silence > a.timeout {
		a.dropLink(ctx, fmt.Errorf("no word from it for %v", silence.Round(time.Millisecond)))
		return
	}
	a.heartbeat()
}

// handle applies one event. done says that the agent ends.
func (a *agent) handle(ctx context.Context, ev any, tick *time.Ticker) (done bool, reason string, err error) {
	switch ev := ev.(type) {
	case joined:
		if ev.err != nil {
			if _, refused := errors.AsType[*ctl.RefusedError](ev.err); refused {
				return true, "", ev.err
			}
			if _, stranger := errors.AsType[*ctl.StrangerError](ev.err); stranger {
				return true, "", ev.err
			}
			if ctx.Err() != nil { // it is why, and comes at the same time
				a.signalled(ctx)
				return true, a.unasked, nil
			}
			return true, "", &LostError{ev.err}
		}
		a.begin(ev, tick)
	case linkEvent:
		if ev.link != a.link {
			return false, "", nil // of a session given up
		}
		if ev.err != nil {
			a.dropLink(ctx, ev.err)
			return false, "", nil
		}
		a.heard = time.Now()
		return a.obey(ctx, ev.msg)
	case taskRunning:
		if ev.e.state == cluster.Deploying {
			a.become(ev.e, cluster.Running)
			a.hasty = earlyBeats
			a.early.Reset(earlyFirst)
		}
	case taskHeldBack:
		a.heldBack(ev.e)
	case profileTaken:
		a.profiling = false
		a.sendProfile(ev)
	case taskEnded:
		a.signalled(ctx)
		a.ended(ev)
	}
	return false, "", nil
}

// obey obeys one message of the master.
func (a *agent) obey(ctx context.Context, m *ctlpb.FromMaster) (done bool, reason string, err error) {
	switch m := m.M.(type) {
	case *ctlpb.FromMaster_Deploy:
		a.ordered = append(a.ordered, m.Deploy.GetTasks()...)
		if !m.Deploy.GetMore() {
			order := a.ordered
			a.ordered = nil
			a.deployAll(ctx, order)
		}
	case *ctlpb.FromMaster_Cancel:
		for _, id := range m.Cancel.GetIds() {
			a.cancel(ctl.Execution(id), m.Cancel.GetReason())
		}
	case *ctlpb.FromMaster_Splits:
		if e := a.executions[ctl.Execution(m.Splits.GetId())]; e != nil {
			e.addSplits(splitsOf(m.Splits.GetSplits()), m.Splits.GetNoMore())
		}
	case *ctlpb.FromMaster_Delivered:
		for _, e := range a.executions {
			e.delivered(m.Delivered.GetMark())
		}
	case *ctlpb.FromMaster_Alignment:
		a.align(m.Alignment)
	case *ctlpb.FromMaster_Tokens:
		a.renew(m.Tokens)
	case *ctlpb.FromMaster_Certificate:
		a.recertify(m.Certificate)
	case *ctlpb.FromMaster_Ack:
		a.forget(m.Ack.GetSeq())
	case *ctlpb.FromMaster_LogLevel:
		a.setLogLevel(m.LogLevel)
	case *ctlpb.FromMaster_Profile:
		a.takeProfile(ctx, m.Profile)
	case *ctlpb.FromMaster_Shutdown:
		a.cfg.Logger.Info("shut down by the ApplicationMaster", "reason", m.Shutdown.GetReason())
		return true, "shut down: " + m.Shutdown.GetReason(), nil
	case *ctlpb.FromMaster_Refused:
		return true, "", &ctl.RefusedError{Reason: m.Refused.GetReason()}
	default:
		a.cfg.Logger.Debug("unknown message of the ApplicationMaster ignored", "type", fmt.Sprintf("%T", m))
	}
	return false, "", nil
}

// begin starts a session.
func (a *agent) begin(j joined, tick *time.Ticker) {
	a.link = newLink(j.sess, a.events)
	a.traceStart()
	a.heard = time.Now()
	if ms := j.answer.GetHeartbeatMs(); ms > 0 {
		a.interval = time.Duration(ms) * time.Millisecond
		tick.Reset(a.interval)
	}
	if ms := j.answer.GetTimeoutMs(); ms > 0 {
		a.timeout = time.Duration(ms) * time.Millisecond
	}
	a.rejoin = time.Duration(j.answer.GetRejoinMs()) * time.Millisecond
	if n := j.answer.GetAttempt(); n > a.cfg.Secrets.Attempt {
		a.cfg.Logger.Info("another attempt of the ApplicationMaster has taken over", "attempt", n)
		a.cfg.Secrets.Attempt = n
	}
	a.cfg.Logger.Info("registered with the ApplicationMaster", "addr", a.cfg.Secrets.MasterAddr, "job", j.answer.GetJobId())
	for _, id := range a.order { // what has changed since the introduction was written, and what was lost with the session before
		a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Task{Task: a.executions[id].update()}})
	}
	a.heartbeat()
}

// dropLink gives up a session that broke and tries to join again, with all that the master may have missed.
func (a *agent) dropLink(ctx context.Context, why error) {
	a.cfg.Logger.Warn("session with the ApplicationMaster lost, joining again", "err", why)
	l := a.link
	a.link, a.ordered = nil, nil // an order that is not whole is given again
	a.wg.Go(l.close)
	wait := a.cfg.RejoinTimeout
	if wait == 0 {
		wait = a.timeout
	}
	a.join(ctx, ctl.JoinOptions{Wait: max(wait, a.rejoin), Refused: max(a.cfg.RefuseTimeout, a.rejoin)})
}

// introduction is the agent's Register message. On coming back it says what runs, and what ended unheard.
func (a *agent) introduction() *ctlpb.Register {
	s := &a.cfg.Secrets
	r := &ctlpb.Register{
		AgentId: string(s.AgentID), ContainerId: s.ContainerID, Version: a.cfg.Version,
		Host: a.cfg.Host, Rack: a.cfg.Rack, ExchangeAddr: a.stack.Addr(), Slots: int32(a.cfg.Slots),
		MemoryMb: a.cfg.MemoryMB, MilliCpu: a.cfg.MilliCPU, Custom: a.cfg.Custom, Pid: int32(os.Getpid()), Attempt: s.Attempt,
		StartedMs: a.cfg.Started.UnixMilli(),
	}
	if a.cfg.Plan != nil {
		r.Fingerprint = a.cfg.Plan.Fingerprint
	}
	for _, id := range a.order {
		r.Tasks = append(r.Tasks, a.executions[id].update())
	}
	return r
}

// send puts a message into the outbox; without a session it is dropped, since the introduction of the next one tells all.
func (a *agent) send(m *ctlpb.FromAgent) {
	if a.link != nil {
		a.link.out.put(m)
	}
}

// People who start a job want to see its first figures: after a task has begun to run, heartbeats out of turn come earlyFirst later, then
// each after twice the time, earlyBeats in all.
const (
	earlyFirst = 25 * time.Millisecond
	earlyBeats = 5
)

func (a *agent) beatEarly() {
	if a.hasty == 0 || a.link == nil {
		return
	}
	a.hasty--
	a.early.Reset(earlyFirst << (earlyBeats - a.hasty))
	a.heartbeat()
}

// heartbeat sends the figures of all tasks.
func (a *agent) heartbeat() {
	a.seq++
	h := &ctlpb.Heartbeat{Seq: a.seq, Agent: a.stats(), Tokens: a.tokens, CertificateEnds: a.certEnds}
	for _, id := range a.order {
		e := a.executions[id]
		if t := e.running(); t != nil && !e.state.Final() {
			h.Tasks = append(h.Tasks, reportOf(t))
		}
	}
	a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Heartbeat{Heartbeat: h}})
}
