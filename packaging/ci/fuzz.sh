#!/usr/bin/env bash
# Runs every fuzz target for the given number of inputs each (5000x). Counted, not timed: at the end of a timed
# run go test now and then reports its own deadline as a failure (golang/go#75804).
set -euo pipefail
cd "$(dirname "$0")/../.."
ran=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT
files=$(git grep -l '^func Fuzz' -- '*_test.go') # of its own: in the head of a loop its failure would be none
for f in $files; do
  dir=./$(dirname "$f")
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$f"); do
    go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 1x -parallel 2 >"$out" 2>&1 || { cat "$out"; exit 1; }
    # A name that no target has is no failure to go test.
    grep -q '^fuzz: elapsed' "$out" || { cat "$out"; echo "fuzz $dir $target: it did not run"; exit 1; }
    ran=$((ran + 1))
    echo "fuzz $dir $target: ok"
  done
done
echo "fuzz: $ran targets"
