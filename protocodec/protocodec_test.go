package protocodec_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/inproc"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
	"github.com/heddle-stream/heddle/protocodec"
)

type visit struct {
	User string
	At   *timestamppb.Timestamp
}

func TestMessagesBetweenProcesses(t *testing.T) {
	job := heddle.NewJob("proto")
	protocodec.Use[*timestamppb.Timestamp](job)
	nums := heddle.FromSource(job, heddle.Generate(100, func(i int64) int64 { return i }))
	visits := heddle.Map(nums, func(i int64) visit {
		if i == 7 {
			return visit{User: "nobody"}
		}
		return visit{fmt.Sprint("user-", i), timestamppb.New(time.Unix(i, 0))}
	})
	sink := &testjob.Sink[visit]{}
	heddle.ToSink(visits.Rebalance(), sink)
	plan, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := inproc.Run(t.Context(), inproc.Config{Graph: job.Graph(), Compiled: plan}); err != nil {
		t.Fatal(err)
	}
	got := sink.Records()
	if len(got) != 100 {
		t.Fatalf("got %d records, want 100", len(got))
	}
	for _, v := range got {
		if (v.User == "nobody") != (v.At == nil) || v.At != nil && v.User != fmt.Sprint("user-", v.At.Seconds) {
			t.Errorf("got %q at %v", v.User, v.At)
		}
	}
}

func TestFormat(t *testing.T) {
	f := protocodec.Format[*wrapperspb.StringValue]()
	var m heddle.Messages
	in := []*wrapperspb.StringValue{wrapperspb.String("a"), wrapperspb.String(""), wrapperspb.String("ccc")}
	if err := f.Encode(&m, in); err != nil {
		t.Fatal(err)
	}
	out, err := f.Decode(nil, &m, 0)
	if err != nil || len(out) != 3 {
		t.Fatalf("got %v, %v", out, err)
	}
	for i := range in {
		if !proto.Equal(in[i], out[i]) {
			t.Errorf("message %d: got %v, want %v", i, out[i], in[i])
		}
	}
	m.Buf[m.Values[2].Off] = 0xFF
	if out, err := f.Decode(nil, &m, 1); err == nil || len(out) != 1 {
		t.Errorf("a bad message: got %v, %v", out, err)
	}
}

func FuzzFormat(f *testing.F) {
	f.Add([]byte("\x0a\x01a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := heddle.Messages{Buf: b}
		m.Values = append(m.Values, struct{ Off, Len int32 }{0, int32(len(b))})
		_, _ = protocodec.Format[*wrapperspb.StringValue]().Decode(nil, &m, 0) // must not panic
	})
}
