// Package sched runs one job: which task runs where, when, and what its failure means. It is pure.
//
// # The job
//
//	Created ── Start ──> Waiting ── slots ──> Running ── all tasks finished ──> Finished
//	                       │  ^                  │
//	             no slots, │  │ delay is over    │ a task failed, an agent was lost
//	                failed v  │                  v
//	                     Restarting <─────── Failing ── all tasks ended, no restart ──> Failed
//	                            restart allowed
//
//	Created, Waiting, Running, Restarting ── Cancel ──> Canceling ── all tasks ended ──> Canceled
//
// A job that is started as Held stays Waiting, even with slots, until it was Checked: what its sources read is there.
//
// # A task
//
//	Created ──> Scheduled ──> Deploying ──> Running ──> Finished
//	   └────────────┴─────────────┴────────────┴──> Canceling ──> Canceled, Finished or Failed
//
// What an agent reports only ever moves a task forward in that order, and only for its present attempt, so that messages that
// are late, doubled or out of order change nothing.
//
// # Whose fault
//
// The first failure that explains itself is the cause of the job's end. A failure of kind Lost or Cancelled is somebody
// else's doing: it makes the job fail at once, but is named as the cause only if nothing better is known when the last task has
// ended. An agent that was lost explains itself.
package sched
