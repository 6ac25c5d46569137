// Package heddletest runs a job in a test: records and watermarks in, the records of each sink out, with a clock that
// only the test moves.
//
//	func TestClicksPerUser(t *testing.T) {
//		h := heddletest.New(t, clicksPerUser())
//		clicks := heddletest.Input[Click](h, "clicks")
//		counts := heddletest.Output[Count](h, "counts")
//
//		clicks.Send(Click{User: "ann", At: noon}, Click{User: "bob", At: noon})
//		clicks.Watermark(noon.Add(time.Minute))
//		got := counts.Take()
//		…
//		h.End()
//	}
//
// The job runs as it does in a cluster: the same compiler, tasks and operators, records encoded and decoded
// between tasks. Only the connectors are replaced, and all tasks run one after the other in the test's own goroutine,
// always in the same order: a breakpoint stops everything, and every run is like the one before.
//
// Each call that puts something in (Send, Watermark, Advance, …) returns when the job has nothing more to do.
package heddletest
