// Package task runs one subtask of a vertex: a chain of operators on one goroutine.
//
// A [Task] builds its chain from the job graph, reads segments from its gates (one for each in-edge) or
// polls its source, merges watermarks, idleness and end over all channels of an input port (the valve),
// calls timers, flushes what operators and writers hold, and ends: by itself when its input ends and everything it
// emitted is consumed, or early when it is cancelled or fails.
//
// Where segments come from and go to is behind [Exchange]: netstack between processes ([NewNetExchange]),
// [Memory] within one.
package task
