#!/usr/bin/env bash
# Runs a command while a server that speaks the S3 API listens on a free port of this machine, as PERPKEEPER_TEST_S3 says.
set -euo pipefail
version=v1.8.0
cd "$(dirname "$0")/../.."

dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid"; rm -rf "$dir"' EXIT
# Of a module of its own: nothing of it belongs into ours.
(cd "$dir" && GOFLAGS=-mod=mod GOBIN="$dir/bin" go install "github.com/versity/versitygw/cmd/versitygw@$version")
mkdir "$dir/data"
for _ in $(seq 20); do
  port=$((20000 + RANDOM % 30000))
  "$dir/bin/versitygw" --access keeper --secret keepersecret --port "127.0.0.1:$port" posix "$dir/data" >"$dir/log" 2>&1 &
  pid=$!
  for _ in $(seq 50); do
    kill -0 "$pid" 2>/dev/null || break
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      export PERPKEEPER_TEST_S3="s3+http://127.0.0.1:$port/keeper" PERPKEEPER_TEST_S3_ACCESS_KEY=keeper \
        PERPKEEPER_TEST_S3_SECRET_KEY=keepersecret
      # the first word may set variables, as make's do
      status=0
      eval "$@" || status=$?
      exit $status
    fi
    sleep 0.2
  done
  kill "$pid" 2>/dev/null || true
  pid=
done
echo "no server came up: $(tail -1 "$dir/log")" >&2
exit 1
