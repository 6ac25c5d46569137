#!/usr/bin/env bash
# Installs what the tests need beside Go, where it may (root, apt-get); else says exactly what to install.
set -euo pipefail
declare -A need=( [java]=openjdk-17-jdk-headless [javac]=openjdk-17-jdk-headless [mvn]=maven [gcc]=gcc [ip]=iproute2 [krb5kdc]=krb5-kdc [kadmin.local]=krb5-admin-server [kinit]=krb5-user )
missing=()
for prog in "${!need[@]}"; do
  command -v "$prog" >/dev/null 2>&1 || missing+=("${need[$prog]}")
done
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || missing+=(chromium)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >/dev/null
  apt-get install -q -y --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "the tests need these packages (Debian names): ${missing[*]}" >&2
  echo "install them, or run as root where apt-get is" >&2
  exit 3
fi
