// Package sim runs the master's whole control plane (slot manager, slot pools, schedulers) against simulated agents and a simulated
// driver, in one goroutine with virtual time. What happens is decided by a seed or a script alone, so that every run can be
// repeated. After each step it checks what must always hold; see check in invariants_test.go.
//
// `make sim SEEDS=n` runs n seeds. A failure names its seed: `go test ./itest/sim -run TestSeeds -sim.seed=N` repeats it and shows its trace.
package sim
