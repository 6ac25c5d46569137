#!/usr/bin/env bash
# What following records costs, in processor time per record.
# 1. Compiled in and off: BenchmarkFollow in turns (ABBA), as it is and "without": the same source with every check of a hot path taken out by an
#    overlay. ROUNDS=n for more than 15 of four runs each.
# 2. At 1,000 records a second, and at one: heddle bench exchange --trace-rate, which compares both by itself. SECONDS_EACH=n for more than 60.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# cut FILE OLD NEW: the overlay's copy of FILE has NEW for OLD, which has to be there.
cut() {
  local copy=$tmp/${1//\//_}
  [ -e "$copy" ] || cp "$1" "$copy"
  grep -qF "$2" "$copy" || { echo "$1 has no \"$2\" any more: mend bench/tracing.sh" >&2; exit 1; }
  sed -i "s|$(printf %s "$2" | sed 's/[][\.*^$|]/\\&/g')|$(printf %s "$3" | sed 's/[&|\]/\\&/g')|" "$copy"
}
cut internal/flow/reader.go 'if r.tracer == nil || len(r.tracer.marks) == 0 {' 'if true {'
cut internal/flow/writer.go 'if w.cfg.Tracer.Active() {' 'if false {'
cut internal/flow/sourceop.go 'pushRead(o.tracer, o.out, split, b, now)' 'o.out.Push(b)'
cut agent/task/input.go 'if it.Hop != nil && t.follow != nil {' 'if false {'
cut agent/task/exchange.go 'if o.marked > 0 && len(o.marks[ch]) > 0 {' 'if false {'
cut netstack/view.go 'if it.noted != nil {' 'if false {'
cut netstack/gate.go 'if in.hop != nil {' 'if false {'
for f in internal/flow/reader.go internal/flow/writer.go internal/flow/sourceop.go agent/task/input.go agent/task/exchange.go netstack/view.go netstack/gate.go; do
  printf '"%s":"%s"\n' "$root/$f" "$tmp/${f//\//_}"
done | paste -sd, | sed 's/.*/{"Replace":{&}}/' >"$tmp/overlay.json"
go test -c -o "$tmp/off" ./agent/task
go test -c -overlay "$tmp/overlay.json" -o "$tmp/without" ./agent/task
CGO_ENABLED=0 go build -o "$tmp/heddle" ./cmd/heddle

run() { # PROGRAM: its processor time a record
  (cd agent/task && "$tmp/$1" -test.run '^$' -test.bench 'BenchmarkFollow/off$' -test.benchtime "${RECORDS:-300000000}x") |
    awk '/^Benchmark/ { for (i = 2; i < NF; i++) if ($(i+1) == "cpu-ns/op") print $i }'
}
for _ in $(seq "${ROUNDS:-15}"); do
  a=$(run without) b=$(run off) c=$(run off) d=$(run without)
  echo "$a $b $c $d"
done | awk '{ base = $1 + $4; off = $2 + $3; print base / off, base / 2, off / 2 }' | sort -n >"$tmp/figures"
awk '{ r[NR] = $1; o[NR] = $3 } END {
  # The bounds between which the median lies by 95 %, of any number of rounds: fewer than k of n throws of a coin are heads by 2.5 %.
  k = 0; term = 0.5 ^ NR; sum = 0
  while (k < int(NR / 2) && sum + term <= 0.025) { sum += term; term *= (NR - k) / (k + 1); k++ }
  if (k > 0) k--
  printf "compiled in and off, to without: ratio %.3f (%.3f to %.3f), %d rounds; about %.3f ns CPU/record\n", r[int((NR + 1) / 2)], r[k + 1], r[NR - k], NR, o[int((NR + 1) / 2)]
}' "$tmp/figures"
for rate in 1000 1; do
  echo "$rate a second:"
  "$tmp/heddle" bench exchange --trace-rate "$rate" --duration "${SECONDS_EACH:-60}s"
done
