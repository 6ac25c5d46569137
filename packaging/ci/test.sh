#!/usr/bin/env bash
# All tests, group by group; each prints its time. Stops at the first group that fails.
set -uo pipefail
cd "$(dirname "$0")/../.."
started=$(date +%s)
group() {
  local name=$1 begin end; shift
  begin=$(date +%s)
  echo "== $name"
  if ! "$@"; then
    echo "== $name FAILED after $(( $(date +%s) - begin )) s"
    exit 1
  fi
  end=$(date +%s)
  echo "== $name ok, $(( end - begin )) s"
}
group needs packaging/ci/needs.sh
group build make --no-print-directory build
group lint make --no-print-directory lint
group unit make --no-print-directory unit
group sim make --no-print-directory sim
group fuzz packaging/ci/fuzz.sh "${FUZZTIME:-5000x}"
group dist packaging/ci/dist.sh
group demo ./bin/heddle demo --duration 8s
group machine make --no-print-directory machine
group itest-net make --no-print-directory itest-net
group itest-web make --no-print-directory itest-web
group itest-jaeger make --no-print-directory itest-jaeger
group itest-kafka make --no-print-directory itest-kafka
group itest-yarn make --no-print-directory itest-yarn
group itest-kerberos make --no-print-directory itest-kerberos
echo "== all groups ok, $(( $(date +%s) - started )) s"
