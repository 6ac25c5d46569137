// Package lint holds the project's import and purity rules as a Go test.
// The rules are those of the layering in ARCHITECTURE.md ("File map"); a new package must be given its layer here.
package lint

// layers from the top down: a package imports only packages of lower layers (and its own subpackages' rules apply to them alone).
// A pattern ending in /... covers a folder's packages.
var layers = [][]string{
	{"bench/yarn"},
	{"cmd/...", "itest/...", "examples/...", "packaging/...", "bench/peers", "bench/kafka"},
	{"run", "heddletest"},
	{"internal/cli"},
	{"bench", "bench/flink", "conf", "internal/jobspec", "internal/demo"},
	{"internal/history", "internal/exporter"},
	{"appmaster/driver/...", "appmaster/web", "internal/inproc", "yarnclient/yarntest", "internal/doctor"},
	{"appmaster", "agent", "yarnclient/amrm", "yarnclient/nm", "internal/ship", "internal/doctor/verdict", "internal/doctor/grants"},
	{"appmaster/plane"},
	{"agent/task", "kafkasource", "kafkasink", "appmaster/sched", "internal/hadoop/hdfsfiles", "yarnclient", "internal/hadoop/identity"},
	{"agent/state", "netstack", "internal/jobgraph", "internal/kafka", "appmaster/slotmgr", "appmaster/slotpool", "appmaster/ckpt"},
	{"internal/jobspec/row", "internal/testjob", "internal/ctl", "internal/telemetry", "internal/profile", "internal/logs", "internal/telemetry/otlptest", "internal/kafka/batch", "internal/testjob", "protocodec", "schemaregistry", "connector", "internal/hadoop/hdfs", "internal/hadoop/kms", "internal/hadoop/creds", "yarnclient/book", "yarnclient/explain"},
	{"internal/hadoop/hrest"},
	{"internal/ctl/pki", "internal/ctl/ctlpb", "internal/protogen", "internal/hadoop/hrpc/...", "internal/hadoop/ssl", "yarnclient/yarnid", "yarnclient/report", "."},
	{"internal/flow", "internal/cluster", "netstack/wire", "netstack/credit", "netstack/bufpool", "netstack/tlsrec", "internal/testnet", "internal/lastlines", "internal/jobspec/strict", "internal/lint", "internal/certstore", "internal/hadoop/jceks",
		"internal/hadoop/hadooppb/...", "internal/hadoop/hconf", "internal/hadoop/krb/...", "internal/hadoop/collected"},
}

// pure packages take events and the time and return effects: no I/O, goroutine, clock, lock, context or logger.
var pure = []string{
	"internal/cluster", "internal/jobgraph", "internal/kafka/batch",
	"netstack/wire", "netstack/credit", "netstack/tlsrec",
	"appmaster/slotmgr", "appmaster/slotpool", "appmaster/sched", "appmaster/plane", "appmaster/ckpt",
	"yarnclient/yarnid", "yarnclient/book", "yarnclient/report", "yarnclient/explain",
	"internal/doctor/verdict", "internal/doctor/grants", "internal/hadoop/creds", "internal/hadoop/collected",
}

// impureImports may not be imported by a pure package.
var impureImports = []string{
	"context", "log", "log/slog", "net", "net/http", "os", "os/exec", "sync", "sync/atomic", "syscall", "math/rand", "math/rand/v2", "crypto/rand", "io/fs",
}

// impureCalls may not be called by a pure package.
var impureCalls = []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick"}

// forbidden lists pairs (package pattern, dependency pattern) that may not be, even indirectly, and why.
var forbidden = []struct{ from, to, why string }{
	{"agent/...", "yarnclient/...", "an agent must not be able to speak to YARN as the master does"},
	{"netstack/...", ".", "the exchange knows channels and bytes, not jobs"},
	{"appmaster/...", "kafkasource", "connectors arrive through package heddle's interfaces"},
	{"appmaster/...", "kafkasink", "connectors arrive through package heddle's interfaces"},
	{"agent/...", "kafkasource", "connectors arrive through package heddle's interfaces"},
	{"agent/...", "kafkasink", "connectors arrive through package heddle's interfaces"},
	{"appmaster", "appmaster/driver/...", "the command wires the driver"},
	{"appmaster", "appmaster/web", "the command wires the web server"},
	{"appmaster/slotmgr", "appmaster/slotpool", "pure siblings meet in plane only"},
	{"appmaster/slotmgr", "appmaster/sched", "pure siblings meet in plane only"},
	{"appmaster/slotpool", "appmaster/slotmgr", "pure siblings meet in plane only"},
	{"appmaster/slotpool", "appmaster/sched", "pure siblings meet in plane only"},
	{"appmaster/sched", "appmaster/slotmgr", "pure siblings meet in plane only"},
	{"appmaster/sched", "appmaster/slotpool", "pure siblings meet in plane only"},
	{"internal/flow", "internal/...", "the typed run time imports the standard library only"},
}

// badNames say nothing about what a package is for.
var badNames = []string{"util", "utils", "common", "helpers", "helper", "base", "types", "manager", "misc", "shared"}
