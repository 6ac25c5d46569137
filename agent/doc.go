// Package agent is the process in a container: it joins the ApplicationMaster, and runs the tasks it is told to in its slots.
//
// One loop owns all state: the session with the master, the slot table (the agent is the witness of what a slot holds)
// and the executions. Around it run goroutines that only bring it events: one that receives the master's messages,
// one for each task. They end before Run returns, save tasks whose functions ignore that they are cancelled.
package agent
