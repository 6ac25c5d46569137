#!/usr/bin/env bash
# Runs every fuzz target for the given number of inputs each (5000x). Counted, not timed: at the end of a timed
# run go test now and then reports its own deadline as a failure (golang/go#75804). A package is linked once for all its targets.
set -euo pipefail
cd "$(dirname "$0")/../.."
ran=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cache=$(go env GOCACHE)/fuzz
module=$(go list -m)
dirs=$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u) # of its own: in the head of a loop its failure would be none
for dir in $dirs; do
  go test -c -fuzz=Fuzz -o "$tmp/fuzz" "./$dir"
  for target in $(cat "$dir"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p'); do
    (cd "$dir" && "$tmp/fuzz" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$1" -test.fuzzminimizetime 1x -test.parallel 2 \
      -test.fuzzcachedir "$cache/$module/$dir") >"$tmp/out" 2>&1 || { cat "$tmp/out"; exit 1; }
    # A name that no target has is no failure.
    grep -q '^fuzz: elapsed' "$tmp/out" || { cat "$tmp/out"; echo "fuzz $dir $target: it did not run"; exit 1; }
    ran=$((ran + 1))
    echo "fuzz $dir $target: ok"
  done
done
echo "fuzz: $ran targets"
