package kafkasource

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/twmb/franz-go/pkg/kfake"
)

// textFormat stands for heddle.Text: one string copy of a batch serves its records.
type textFormat struct{}

func (textFormat) Name() string               { return "text" }
func (textFormat) Fields() flow.MessageFields { return 0 }
func (textFormat) Decode(dst []string, m *flow.Messages, from int) ([]string, error) {
	s := string(m.Buf)
	for _, v := range m.Values[from:] {
		dst = append(dst, s[v.Off:v.Off+max(v.Len, 0)])
	}
	return dst, nil
}
func (textFormat) Encode(*flow.Messages, []string) error { return nil }

// BenchmarkRead reads 100-byte records as strings from a broker in this process, which serves one batch of 10,000 again and again.
func BenchmarkRead(b *testing.B) {
	c := newCluster(b, kfake.NumBrokers(1), kfake.SeedTopics(8, "a"), kfake.SyntheticFetch(kfake.SyntheticBatch{}))
	rt := newRuntime(c.ListenAddrs())
	src := Topics("a")
	e, err := src.Enumerator(b.Context(), env(rt, nil))
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	r, err := flow.Decode(src, textFormat{}, new(flow.Policy)).NewReader(b.Context(), flow.ReaderEnv{Runtime: rt})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	d, err := e.Discover(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := r.AddSplits(d.Added); err != nil {
		b.Fatal(err)
	}
	n := 0
	emit := func(_ string, batch flow.Batch[string], _ bool) error {
		n += len(batch.Recs)
		return nil
	}
	b.ReportAllocs()
	const step = 1_000_000
	for b.Loop() {
		for n = 0; n < step; {
			st, err := r.Poll(emit)
			if err != nil {
				b.Fatal(err)
			}
			if st == flow.SourceWait {
				<-rt.woken
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/step, "ns/record")
}
