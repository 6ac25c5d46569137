#!/usr/bin/env bash
# Makes what is handed out, and looks into it: the tarball's program runs, the packages hold what they should.
set -euo pipefail
cd "$(dirname "$0")/../.."
make --no-print-directory dist
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tar -xzf out/dist/heddle-*.tar.gz -C "$scratch" --strip-components=1
"$scratch/bin/heddle" version
for file in conf/heddle.yaml hadoop/heddle.sh man/man1/heddle-run.1 completions/_heddle completions/heddle.bash completions/heddle.fish docs/cli.md LICENSE; do
  [ -s "$scratch/$file" ] || { echo "the tarball has no $file" >&2; exit 1; }
done
bash -n "$scratch/completions/heddle.bash"
grep -q 'SH SYNOPSIS' "$scratch/man/man1/heddle-run.1"
[ "$(head -c 4 out/dist/heddle-*.rpm | od -An -tx1 | tr -d ' ')" = edabeedb ] || { echo "the rpm is none" >&2; exit 1; }
if command -v dpkg-deb >/dev/null; then
  dpkg-deb -x out/dist/heddle_*.deb "$scratch/deb"
  "$scratch/deb/usr/bin/heddle" version
  for file in usr/lib/heddle/hadoop/heddle.sh etc/heddle/heddle.yaml usr/share/man/man1/heddle-run.1.gz usr/share/bash-completion/completions/heddle; do
    [ -s "$scratch/deb/$file" ] || { echo "the deb has no $file" >&2; exit 1; }
  done
fi
