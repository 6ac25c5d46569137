// Command clicks counts clicks per user and minute, from Kafka to Kafka:
//
//	go run ./examples/clicks run --kafka.brokers localhost:9092 --parallelism 2
//
// clicks.yaml beside it is the same job in YAML; `heddle demo` runs it with everything embedded.
package main

import (
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/kafkasource"
	"github.com/heddle-stream/heddle/run"
)

// Click is an event of the topic clicks.
type Click struct {
	Kind string    `json:"kind"`
	User string    `json:"user"`
	URL  string    `json:"url"`
	At   time.Time `json:"at"`
}

func main() { run.Main(job()) }

func job() *heddle.Job {
	job := heddle.NewJob("clicks-per-user")
	events := heddle.From(job, kafkasource.Topics("clicks"), heddle.JSON[Click]()).
		Watermark(heddle.BoundedDelay(5*time.Second, func(c Click) time.Time { return c.At }))
	clicks := heddle.Filter(events, func(c Click) bool { return c.Kind == "click" })
	perUser := heddle.KeyBy(clicks, func(c Click) string { return c.User })
	counts := heddle.Aggregate(heddle.Tumbling(perUser, time.Minute), heddle.Count[Click]())
	byUser := kafkasink.WithKey(heddle.JSON[heddle.Windowed[string, int64]](), func(w heddle.Windowed[string, int64]) string { return w.Key })
	heddle.To(counts, kafkasink.Topic("clicks-per-user"), byUser)
	return job
}
