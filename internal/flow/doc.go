// Package flow is the typed run time of a job: what operators, codecs and connectors are made of.
//
// Records are values of the author's own types and move in batches ([Batch]) from one operator's
// [Out] to the next. Where a batch leaves a process it is encoded into a segment by a typed writer
// and decoded by a typed reader; the engine in between (agent/task, netstack) sees neither type.
// The seam between typed and untyped code is [Type], [Writer], [SegmentReader] and [SegmentOut].
//
// The package imports the standard library only.
package flow
