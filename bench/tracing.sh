#!/usr/bin/env bash
# What following records costs, in processor time per record: BenchmarkFollow in turns, as it is and without. "Without" is the same source with every
# check of a hot path taken out by an overlay. ROUNDS=n for more than 15.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# cut FILE OLD NEW: the overlay's copy of FILE has NEW for OLD, which has to be there.
cut() {
  local copy=$tmp/${1//\//_}
  [ -e "$copy" ] || cp "$1" "$copy"
  grep -qF "$2" "$copy" || { echo "$1 has no \"$2\" any more: mend bench/tracing.sh" >&2; exit 1; }
  sed -i "s|$(printf %s "$2" | sed 's/[][\.*^$|]/\\&/g')|$3|" "$copy"
}
cut internal/flow/reader.go 'if r.tracer == nil || len(r.tracer.marks) == 0 {' 'if true {'
cut internal/flow/writer.go 'if w.cfg.Tracer.Active() {' 'if false {'
cut internal/flow/sourceop.go 'pushRead(o.tracer, o.out, split, b, now)' 'o.out.Push(b)'
cut agent/task/input.go 'if it.Hop != nil && t.follow != nil {' 'if false {'
cut agent/task/exchange.go 'if len(o.marks[ch]) > 0 {' 'if false {'
cut netstack/view.go 'if it.noted != nil {' 'if false {'
cut netstack/gate.go 'if in.hop != nil {' 'if false {'
for f in internal/flow/reader.go internal/flow/writer.go internal/flow/sourceop.go agent/task/input.go agent/task/exchange.go netstack/view.go netstack/gate.go; do
  printf '"%s":"%s"\n' "$root/$f" "$tmp/${f//\//_}"
done | paste -sd, | sed 's/.*/{"Replace":{&}}/' >"$tmp/overlay.json"
go test -c -o "$tmp/as-it-is" ./agent/task
go test -c -overlay "$tmp/overlay.json" -o "$tmp/without" ./agent/task

run() { # NAME PROGRAM BENCHMARK
  (cd agent/task && "$2" -test.run '^$' -test.bench "BenchmarkFollow/$3\$" -test.benchtime "${RECORDS:-300000000}x") |
    awk -v name="$1" '/^Benchmark/ { for (i = 2; i < NF; i++) if ($(i+1) == "cpu-ns/op") print name, $i }'
}
for _ in $(seq "${ROUNDS:-15}"); do
  run without "$tmp/without" off
  run off "$tmp/as-it-is" off
  run one-a-second "$tmp/as-it-is" traced-1
  run one-of-40000 "$tmp/as-it-is" traced-of-40000
done >"$tmp/figures"
echo "processor time per record: the lowest, the middle; and the ratio of without to it: of the lowest, in the middle of pairs"
for name in without off one-a-second one-of-40000; do
  lowest=$(awk -v n=$name '$1 == n { print $2 }' "$tmp/figures" | sort -n | head -1)
  base=$(awk '$1 == "without" { print $2 }' "$tmp/figures" | sort -n | head -1)
  middle=$(awk -v n=$name '$1 == n { print $2 }' "$tmp/figures" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
  pairs=$(awk -v n=$name '$1 == "without" { base = $2 } $1 == n { print base / $2 }' "$tmp/figures" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
  awk -v n=$name -v l="$lowest" -v b="$base" -v m="$middle" -v p="$pairs" 'BEGIN { printf "%-14s %7.3f ns %7.3f ns   %.3f  %.3f\n", n, l, m, b / l, p }'
done
# One of 40,000 is about 10,000 a second here: so that what a trace costs is more than noise.
middle() { awk -v n="$1" '$1 == n { print $2 }' "$tmp/figures" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
awk -v off="$(middle off)" -v of="$(middle one-of-40000)" 'BEGIN {
  trace = (of - off) * 40000
  printf "a trace of a record over one hop: %.0f us; at one of 400,000, about 1,000 a second: %.3f of the rate without\n", trace / 1000, off / (off + trace / 400000)
}'
