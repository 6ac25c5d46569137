#!/usr/bin/env bash
# Runs every fuzz target for the given number of inputs each (20000x). Counted, not timed: at the end of a timed
# run go test now and then reports its own deadline as a failure (golang/go#75804).
set -euo pipefail
cd "$(dirname "$0")/../.."
for f in $(git grep -l '^func Fuzz' -- '*_test.go'); do
  dir=./$(dirname "$f")
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$f"); do
    go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 1x -parallel 2 >/tmp/heddle-fuzz.$$ 2>&1 || { cat /tmp/heddle-fuzz.$$; rm -f /tmp/heddle-fuzz.$$; exit 1; }
    echo "fuzz $dir $target: ok"
  done
done
rm -f /tmp/heddle-fuzz.$$
