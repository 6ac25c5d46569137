// Command gojob is a job in Go for tests: it writes numbers into files in HDFS, in the folder gojob of the user's home.
package main

import (
	"strconv"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/run"
)

func main() {
	job := heddle.NewJob("gojob")
	numbers := heddle.FromSource(job, heddle.Generate(1000, func(i int64) string { return strconv.FormatInt(i, 10) }))
	heddle.To(numbers, heddle.ToFiles("hdfs:///user/alice/gojob").Overwrite(), heddle.Text())
	run.Main(job)
}
