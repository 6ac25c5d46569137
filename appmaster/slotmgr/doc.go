// Package slotmgr decides which agents there are and who gets their slots. It is pure: events and the time go in, effects come out.
//
// # Life of an agent
//
//	            Granted            Registered             silence, broken session
//	(nothing) ──────────> Starting ──────────> Alive ───────────────────────────> Probation
//	                         │                   │  <───────────────────────────     │
//	                         │ timeout, exit     │ idle, exit, goodbye    heard      │ timeout, exit
//	                         └───────────────────┴───────────────────────────────────┘
//	                                             ▼
//	                                           (gone)
//
// An agent is known from the moment its driver grants it; nobody else may register. Once gone, its id is a stranger's.
// One whose session broke may register again for as long as it is on probation: the same process, with its slots as they were.
//
// # Level-triggered
//
// Handle applies one event. Due then answers what is due at this moment, whatever the events were: which free slots go to
// which job, how many agents to ask for (need against have and starting), whom to return, who has been silent too long.
// Call Due after events (many may come before it) and again at Next.
//
// Requirements are counts a job, not single requests. Jobs are served strictly in the order in which they came, so that
// no two of them each hold half of what they need.
package slotmgr
