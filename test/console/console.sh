#!/usr/bin/env bash
# The console beside the demo's keepers, in a real browser; then how long its pages take of a keeper with much before it.
# It installs what it needs: Chromium of the distribution, axe-core of npm.
# CONSOLE_SHOTS names a folder for all screenshots; without it those of docs/console.md are written anew.
# Exit status: 0 all as expected, 1 something was not, 77 there is no Chromium here, and none can be had.
set -euo pipefail
cd "$(dirname "$0")/../.."
axe=4.14.1

missing() {
  echo "console test: $1" >&2
  exit 77
}

if ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || missing "Chromium is not installed (Debian, as root: apt-get install chromium)"
  echo "installing Chromium" >&2
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >&2 ||
    missing "Chromium cannot be installed"
fi
cache="$PWD/.cache/axe-core-$axe"
if [ ! -f "$cache/package/axe.min.js" ]; then
  mkdir -p "$cache"
  (cd "$cache" && npm pack --silent "axe-core@$axe" >/dev/null && tar xzf "axe-core-$axe.tgz") || missing "axe-core cannot be had from npm"
fi
[ -z "${CONSOLE_SHOTS:-}" ] || mkdir -p "$CONSOLE_SHOTS"
CONSOLE_AXE="$cache/package/axe.min.js" go test -tags browser -count=1 -v -vet=off -timeout 30m ./test/console
go test -run '^$' -vet=off -timeout 15m -bench Pages -benchtime 40x ./services/console/web
