#!/usr/bin/env bash
# The console in a real browser. It installs what it needs: Chromium of the distribution, axe-core of npm.
# CONSOLE_SHOTS names a folder for the screenshots (default docs/console).
set -euo pipefail
cd "$(dirname "$0")/../.."
axe=4.14.1
if ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
  echo "installing Chromium" >&2
  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core
fi
cache="$PWD/.cache/axe-core-$axe"
if [ ! -f "$cache/package/axe.min.js" ]; then
  mkdir -p "$cache"
  (cd "$cache" && npm pack --silent "axe-core@$axe" >/dev/null && tar xzf "axe-core-$axe.tgz")
fi
shots="${CONSOLE_SHOTS:-$PWD/docs/console}"
mkdir -p "$shots"
CONSOLE_SHOTS="$shots" CONSOLE_AXE="$cache/package/axe.min.js" \
  exec go test -tags browser -count=1 -v -timeout 15m -run 'InABrowser' ./services/console/web
