package kafkasource_test

import (
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/kafkasource"
)

type click struct {
	User, URL string
	At        time.Time
}

func ExampleTopics() {
	job := heddle.NewJob("clicks")
	clicks := heddle.From(job, kafkasource.Topics("clicks"), heddle.JSON[click]())
	heddle.To(clicks, heddle.Stdout(), heddle.JSON[click]())
}

// All topics of a kind, as they are now, from yesterday's records on.
func ExamplePattern() {
	job := heddle.NewJob("yesterday")
	src := kafkasource.Pattern("logs-.*").Exclude("logs-debug").
		Start(kafkasource.Timestamp(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))).
		Stop(kafkasource.Latest())
	lines := heddle.From(job, src, heddle.Text())
	heddle.To(lines, heddle.Stdout(), heddle.Text())
}

// A format that sees key, headers and the rest.
func ExampleRecordFormat() {
	job := heddle.NewJob("clicks")
	format := kafkasource.RecordFormat("click", func(r *kafkasource.Record) (click, error) {
		return click{User: string(r.Key), URL: string(r.Value), At: r.Time}, nil
	})
	clicks := heddle.From(job, kafkasource.Topics("clicks"), format)
	heddle.To(clicks, heddle.Stdout(), heddle.JSON[click]())
}
