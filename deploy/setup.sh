#!/usr/bin/env bash
# Checks the toolchain and fetches the modules, with one clear line for what is missing. Quick when there is nothing to do.
# "setup.sh monitoring" sees instead to promtool and amtool, which test the alert rules and Alertmanager's configuration.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = monitoring ]; then
  if command -v promtool >/dev/null && command -v amtool >/dev/null; then
    exit 0
  fi
  packages="prometheus prometheus-alertmanager"
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "setup: promtool or amtool is not installed: install Prometheus' tools and run make again (Debian, as root: apt-get install $packages)" >&2
    exit 1
  fi
  echo "setup: installing promtool and amtool ($packages)"
  log=$(mktemp)
  # shellcheck disable=SC2086 # a list of packages
  if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages; } >"$log" 2>&1; then
    echo "setup: installing $packages failed:" >&2
    tail -n 5 "$log" >&2
    exit 1
  fi
  rm -f "$log"
  exit 0
fi

want=$(awk '$1 == "go" {print $2}' go.mod)
if ! command -v go >/dev/null; then
  echo "setup: Go is not installed: install Go $want or newer and run make again" >&2
  exit 1
fi
have=$(go env GOVERSION)
if [ "$(printf '%s\n%s\n' "$want" "${have#go}" | sort -V | head -n 1)" != "$want" ]; then
  echo "setup: this is $have, Go $want or newer is needed: install it and run make again" >&2
  exit 1
fi
if ! command -v cc >/dev/null && ! command -v gcc >/dev/null; then
  echo "setup: no C compiler: the race detector needs one (Debian: apt-get install gcc libc6-dev)" >&2
  exit 1
fi
stamp=.cache/modules.$(cksum <go.sum | cut -d' ' -f1)
if [ ! -e "$stamp" ]; then
  echo "setup: fetching the Go modules"
  go mod download
  mkdir -p .cache && touch "$stamp"
fi
