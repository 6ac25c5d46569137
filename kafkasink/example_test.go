package kafkasink_test

import (
	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/kafkasource"
)

type count struct {
	User string
	N    int64
}

func ExampleTopic() {
	job := heddle.NewJob("copy")
	lines := heddle.From(job, kafkasource.Topics("lines"), heddle.Text())
	heddle.To(lines, kafkasink.Topic("copies").Compression("zstd"), heddle.Text())
}

// Records of one user go to one partition.
func ExampleWithKey() {
	job := heddle.NewJob("counts")
	counts := heddle.From(job, kafkasource.Topics("counts"), heddle.JSON[count]())
	format := kafkasink.WithKey(heddle.JSON[count](), func(c count) string { return c.User })
	heddle.To(counts, kafkasink.Topic("counts-by-user"), format)
}
