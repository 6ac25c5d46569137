package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
)

// Decode makes a typed source of a connector and the format of its messages. bad says what becomes of a
// message that can't be decoded; those left out are counted in "bad messages". It is read when a reader is made.
func Decode[T any](src MessageSource, f Format[T], bad *Policy) Input[T] {
	return decoded[T]{MessageSource: src, format: f, bad: bad}
}

type decoded[T any] struct {
	MessageSource
	format Format[T]
	bad    *Policy
}

func (d decoded[T]) Describe() string { return d.MessageSource.Describe() + " " + d.format.Name() }

// Opener is a Format that needs the job's options. What Open returns is used in its place, in one task; ctx ends with that.
type Opener[T any] interface {
	Open(ctx context.Context, option func(name string) (string, bool)) (Format[T], error)
}

// opened returns the format to be used in a task.
func opened[T any](ctx context.Context, f Format[T], option func(name string) (string, bool)) (Format[T], error) {
	o, ok := f.(Opener[T])
	if !ok {
		return f, nil
	}
	open, err := o.Open(ctx, option)
	if err != nil {
		return nil, fmt.Errorf("cannot set up format %s: %w", f.Name(), err)
	}
	return open, nil
}

// NewReader implements Input.
func (d decoded[T]) NewReader(ctx context.Context, env ReaderEnv) (Reader[T], error) {
	format, err := opened(ctx, d.format, env.Runtime.Option)
	if err != nil {
		return nil, err
	}
	d.format = format
	want := d.format.Fields()
	if env.Times {
		want |= FieldTime
	}
	want |= FieldOffset // for errors; costs a store a message
	tracer := TracerOf(env.Runtime)
	if tracer != nil {
		want |= FieldTrace
	}
	r, err := d.NewMessageReader(ctx, env, want)
	if err != nil {
		return nil, err
	}
	return &decodingReader[T]{MessageReader: r, format: d.format, bad: *d.bad, dead: env.Dead, times: env.Times,
		node: env.Runtime.Node().Title(), skipped: env.Runtime.Counter("bad messages"), tracer: tracer}, nil
}

// decodingReader applies a Format to what a MessageReader emits.
type decodingReader[T any] struct {
	MessageReader

	// Immutable.
	format  Format[T]
	bad     Policy
	dead    func(DeadRecord, int64, bool) error
	node    string
	times   bool
	skipped *Counter
	tracer  *Tracer

	// Owned by the task's goroutine.
	recs []T
	ts   []int64
	emit Emit[T]
	each EmitMessages // r.decode, made once
}

// Poll implements Reader.
func (r *decodingReader[T]) Poll(emit Emit[T]) (SourceStatus, error) {
	r.emit = emit
	if r.each == nil {
		r.each = r.decode
	}
	return r.MessageReader.Poll(r.each)
}

// Commits implements Committing where the connector does.
func (d decoded[T]) Commits() bool {
	c, ok := d.MessageSource.(Committing)
	return ok && c.Commits()
}

// Finalize implements Finalizer where the connector does.
func (d decoded[T]) Finalize(env EnumeratorEnv, splits []Split) error {
	if f, ok := d.MessageSource.(Finalizer); ok {
		return f.Finalize(env, splits)
	}
	return nil
}

// Unwrap returns the connector's own reader.
func (r *decodingReader[T]) Unwrap() MessageReader { return r.MessageReader }

// Pause implements Pauser where the MessageReader does.
func (r *decodingReader[T]) Pause(split string, on bool) {
	if p, ok := r.MessageReader.(Pauser); ok {
		p.Pause(split, on)
	}
}

func (r *decodingReader[T]) decode(split string, m *Messages, ended bool) error {
	recs, err := r.format.Decode(r.recs[:0], m, 0)
	r.recs = recs
	times := m.Times
	if err != nil {
		if times, err = r.decodeRest(split, m, err); err != nil {
			return err
		}
	}
	b := Batch[T]{Recs: r.recs}
	if r.times {
		b.Times = times
	}
	if r.tracer == nil {
		return r.emit(split, b, ended)
	}
	return r.emitTraced(split, m, b, ended)
}

// emitTraced emits and says which records came with a trace, and of any from where it came.
func (r *decodingReader[T]) emitTraced(split string, m *Messages, b Batch[T], ended bool) error {
	t := r.tracer
	defer func() { t.messages, t.arrived = nil, nil }()
	if len(b.Recs) == m.Len() { // else some were left out: records no longer stand where their messages do
		t.messages = m
		for _, tr := range m.Traces {
			t.arrived = append(t.arrived, Arrival{Index: tr.Index, Parent: tr.Context, Attrs: describeMessage(m, tr.Index)})
		}
	}
	return r.emit(split, b, ended)
}

// describeMessage says where message i came from, by OpenTelemetry's semantic conventions for messaging.
func describeMessage(m *Messages, i int) []TraceAttr {
	if m.Topic == "" || m.Lines {
		return nil
	}
	attrs := []TraceAttr{{"messaging.destination.name", m.Topic}, {"messaging.destination.partition.id", strconv.Itoa(int(m.Partition))}}
	if i < len(m.Offsets) {
		attrs = append(attrs, TraceAttr{"messaging.kafka.offset", m.Offsets[i]})
	}
	return attrs
}

// decodeRest goes on after a bad message, if bad messages are to be skipped, and returns the times of the good ones.
func (r *decodingReader[T]) decodeRest(split string, m *Messages, err error) ([]int64, error) {
	r.ts = append(r.ts[:0], m.Times[:min(len(r.recs), len(m.Times))]...)
	next := len(r.recs)
	for err != nil {
		if err := r.left(split, m, next, err); err != nil {
			return nil, err
		}
		next++
		n := len(r.recs)
		r.recs, err = r.format.Decode(r.recs, m, next)
		got := len(r.recs) - n
		if m.Times != nil {
			r.ts = append(r.ts, m.Times[next:next+got]...)
		}
		next += got
	}
	return r.ts, nil
}

// left applies the policy to message i, which can't be decoded for the reason err: nil means go on.
func (r *decodingReader[T]) left(split string, m *Messages, i int, err error) error {
	if m.Lines && len(bytes.TrimSpace(m.Value(i))) == 0 {
		return nil
	}
	where := split
	if i < len(m.Offsets) {
		where = fmt.Sprintf("%s at offset %d", split, m.Offsets[i])
	}
	err = fmt.Errorf("cannot decode message of %s as %s: %w", where, r.format.Name(), err)
	if f, ok := errors.AsType[interface {
		error
		Fatal() bool
	}](err); ok && f.Fatal() {
		return err // no message is at fault for it
	}
	if r.bad.OnError == Fail {
		return &DataError{fmt.Errorf("%w; message: %s", err, show(m.Value(i), maxShown)), fmt.Sprintf("cannot decode message of %s as %s: %s", where, r.format.Name(), notLogged)}
	}
	r.skipped.Add(1)
	if r.bad.OnError == Skip || r.dead == nil {
		return nil
	}
	d := DeadRecord{Operator: r.node, Reason: err.Error(), Record: show(m.Value(i), 4<<10), Value: bytes.Clone(m.Value(i)), Topic: m.Topic, Partition: m.Partition}
	if i < len(m.Offsets) {
		d.Offset = m.Offsets[i]
	}
	if i < len(m.Keys) {
		d.Key = bytes.Clone(m.At(m.Keys[i]))
	}
	if r.times && i < len(m.Times) {
		return r.dead(d, m.Times[i], true)
	}
	return r.dead(d, 0, false)
}

// Encode makes a typed sink of a connector and the format of its messages.
func Encode[T any](sink MessageSink, f Format[T]) Output[T] {
	return encoded[T]{sink: sink, format: f}
}

type encoded[T any] struct {
	sink   MessageSink
	format Format[T]
}

func (e encoded[T]) Describe() string { return e.sink.Describe() + " " + e.format.Name() }

// NewWriter implements Output.
func (e encoded[T]) NewWriter(ctx context.Context, rt Runtime) (SinkWriter[T], error) {
	format, err := opened(ctx, e.format, rt.Option)
	if err != nil {
		return nil, err
	}
	e.format = format
	w, err := e.sink.NewMessageWriter(ctx, rt)
	if err != nil {
		return nil, err
	}
	return &encodingWriter[T]{MessageWriter: w, format: e.format, tracer: TracerOf(rt)}, nil
}

// encodingWriter applies a Format to what it is given and passes it to a MessageWriter.
type encodingWriter[T any] struct {
	MessageWriter
	format Format[T] // immutable
	tracer *Tracer   // immutable

	m Messages // owned by the task's goroutine
}

// failing is the MessageWriter, if it is Failing.
func (w *encodingWriter[T]) failing() Failing {
	f, _ := w.MessageWriter.(Failing)
	return f
}

// Write implements SinkWriter.
func (w *encodingWriter[T]) Write(b Batch[T]) error {
	w.m.Reset()
	if err := w.format.Encode(&w.m, b.Recs); err != nil {
		return &DataError{fmt.Errorf("cannot encode record as %s: %w", w.format.Name(), err), fmt.Sprintf("cannot encode record as %s: %s", w.format.Name(), notLogged)}
	}
	if c, ok := w.tracer.Current(); ok && c.Sampled() && len(b.Recs) <= maxFollowed {
		for i := range b.Recs {
			w.m.Traces = append(w.m.Traces, MessageTrace{i, c})
		}
	}
	times := w.m.Times
	if b.Times != nil && len(times) == 0 {
		w.m.Times = b.Times
	}
	err := w.MessageWriter.Write(&w.m)
	w.m.Times = times[:0]
	return err
}

// Finish implements Finisher where the MessageWriter does.
func (w *encodingWriter[T]) Finish(ctx context.Context) error {
	if f, ok := w.MessageWriter.(Finisher); ok {
		return f.Finish(ctx)
	}
	return nil
}
