package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// askKafkaTokens asks every broker of the clusters that a job is to log in to by delegation tokens whether it gives and takes them. None is made.
func (p *patient) askKafkaTokens(ctx context.Context) (string, verdict.Verdict) {
	var vs []verdict.Verdict
	var tried []string
	for _, c := range p.kafka {
		switch {
		case c.Tokens == NoTokens:
			continue
		case c.Barred != nil:
			vs = append(vs, verdict.KafkaTokenBar(c.Barred))
			continue
		}
		all := make([]verdict.TokenBroker, len(c.brokers))
		var wg sync.WaitGroup
		for i, id := range slices.Sorted(maps.Keys(c.brokers)) {
			all[i].Addr = c.brokers[id]
			tried = append(tried, all[i].Addr)
			wg.Go(func() {
				cfg := c.Config
				cfg.DialTimeout, cfg.RequestTimeout = callTime, 2*callTime
				all[i].Err = kafka.AskOfTokens(ctx, cfg, all[i].Addr)
			})
		}
		wg.Wait()
		vs = append(vs, verdict.KafkaTokens(all, c.Tokens == Demanded))
	}
	if len(vs) == 0 {
		return "", verdict.Skip("no job is to log in to Kafka by delegation tokens: they are for target yarn and GSSAPI, see kafka.delegation-token")
	}
	return "ask " + strings.Join(tried, ", ") + " whether they give and take delegation tokens", verdict.All(vs)
}
