#!/usr/bin/env bash
# Checks the toolchain and fetches the modules, with one clear line for what is missing. Quick when there is nothing to do.
set -euo pipefail
cd "$(dirname "$0")/.."

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
