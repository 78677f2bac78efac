#!/usr/bin/env bash
# Builds a release into dist/: for each platform one archive of the keeper's programs, a bill of materials of all modules in them (CycloneDX), and the
# checksums of both. Two builds of one commit with one toolchain are equal byte for byte, wherever they are made.
#
#   deploy/release.sh v0.1.0
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:-}
if ! [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  echo "release: \"$version\" is no version: say VERSION=v0.1.0, as of semver.org" >&2
  exit 2
fi
if [ -n "$(git status --porcelain)" ]; then
  echo "release: there are changes that no commit has: commit them, or build from a clean checkout" >&2
  exit 2
fi
revision=$(git rev-parse HEAD)
when=$(git log -1 --format=%cI)
rm -rf dist && mkdir dist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for arch in amd64 arm64; do
  name=perpkeeper-$version-linux-$arch
  echo "release: building $name"
  mkdir "$work/$name"
  for program in scanner statevm planner sender console keeperctl; do
    CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOFLAGS= go build -trimpath -buildvcs=false -o "$work/$name/$program" \
      -ldflags "-s -w -buildid= -X perpkeeper/pkg/service.version=$version -X perpkeeper/pkg/service.revision=$revision" \
      "./services/$program/cmd/$program"
  done
  cp LICENSE CHANGELOG.md "$work/$name/"
  tar --sort=name --mtime="$when" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$work" -cf - "$name" | gzip -n9 >"dist/$name.tar.gz"
done
go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 mod -json -type application -std -noserial -notimestamp \
  -output "dist/perpkeeper-$version.cdx.json" .
(cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
