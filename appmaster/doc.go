// Package appmaster runs one application: it gets agents, gives their slots to the job's tasks, watches them, and tells how it went.
//
// # Who does what
//
// One goroutine, the loop in Run, owns all state. What happens elsewhere comes to it as a function to run: messages of agents,
// news of the driver, splits that an enumerator found, a wish of a user. It applies events to the pure machines (slotmgr, slotpool,
// sched, in this order) and performs the effects that they return. It never waits for anything but the next event:
//
//	sessions    one reading goroutine and one writing one an agent, with a bounded queue between the loop and the writer
//	sources     one goroutine a source, the only one that calls its enumerator
//	driver      starts and ends agents; its methods return at once
//	front       serves people, from the immutable Snapshot that the loop publishes
//
// The loop is level-triggered: after each batch of events it asks the machines what is due, until nothing is.
//
// # The end
//
// When the job is over, agents are told to shut down and have a few seconds to go by themselves; then the driver ends those left
// and waits for them; then sessions, sources and front are closed, each goroutine waited for; then result.json is written.
package appmaster
