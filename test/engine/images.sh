#!/usr/bin/env bash
# The images of docker-compose.yml without a registry: stand-ins made of Debian's and Maven's packages (stand-ins.yml names them to Compose), and the keeper's.
#
#   images.sh NAME…         make what is missing or has changed: postgres kafka prometheus alertmanager grafana
#   images.sh keeper        perpkeeper and perpkeeper-devnet with the last stages of Dockerfile, around binaries that this machine's Go has built
#   images.sh dockerfile    the same with Dockerfile as it is, everything compiled inside (golang is a stand-in as well)
#
# What a stand-in imitates of the original stands in images/NAME/Dockerfile. Exit status 77: this machine cannot.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
work=$ENGINE_DIR/images

# build TAG FOLDER SUM: unless the image of that sum is there.
build() {
	[ "$(docker image inspect -f '{{index .Config.Labels "sum"}}' "$1" 2>/dev/null)" = "$3" ] && return
	say "building $1"
	nice docker build -q --label "sum=$3" -t "$1" "$2" >/dev/null 2>"$ENGINE_DIR/build.log" || die "building $1: $(tail -n 3 "$ENGINE_DIR/build.log")"
}

sum() { (cd "$1" && find . -type f | sort | xargs cksum | cksum | cut -d' ' -f1); }

# One root file system for all of them: layers are shared, and apt runs once.
base() {
	docker image inspect perpkeeper-engine/base >/dev/null 2>&1 && return
	say "making the stand-ins' Debian (mmdebstrap)"
	mkdir -p "$work"
	nice mmdebstrap --variant=minbase --include=ca-certificates,busybox,gosu,procps,postgresql-17,openjdk-21-jre-headless,prometheus-alertmanager \
		--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--essential-hook='mkdir -p "$1/etc/postgresql-common"; echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.conf"' \
		trixie "$work/base.tar" "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) trixie main" \
		>"$ENGINE_DIR/mmdebstrap.log" 2>&1 || unable "mmdebstrap: $(tail -n 3 "$ENGINE_DIR/mmdebstrap.log")"
	docker import "$work/base.tar" perpkeeper-engine/base >/dev/null
	rm "$work/base.tar"
}

# context NAME: a copy of the stand-in's folder, to which is added what comes from elsewhere.
context() {
	rm -rf "${work:?}/$1"
	mkdir -p "$work"
	cp -r "$here/images/$1" "$work/$1"
}

stand_in() {
	context "$1"
	case $1 in
	kafka)
		local lib
		lib=$("$repo/test/kafka/kafka.sh" lib 2>"$ENGINE_DIR/maven.log") || unable "Maven: $(tail -n 3 "$ENGINE_DIR/maven.log")"
		cp -r "$lib" "$work/kafka/libs"
		;;
	prometheus) cp "$ENGINE_DIR/sid/x/usr/bin/prometheus" "$work/prometheus/" ;;
	esac
	build "perpkeeper-engine/$1" "$work/$1" "$(sum "$work/$1")"
	rm -rf "${work:?}/$1"
}

binaries() { sed -n 's/.*for b in \(.*\); do.*/\1/p' "$repo/Dockerfile"; }

# stage TAG STAGE DOCKERFILE
stage() {
	docker build -q -t "$1" --target "$2" -f "$3" "$repo/deploy" >/dev/null 2>"$ENGINE_DIR/build.log" ||
		die "Dockerfile's stage $2: $(tail -n 3 "$ENGINE_DIR/build.log")"
}

# keeper compiles where the packages of the last build lie, and leaves to Docker what Dockerfile does after its first stage.
keeper() {
	local out=$work/keeper b targets=()
	rm -rf "$out"
	mkdir -p "$out/etc/ssl/certs" "$out/out" "$out/devnet/var/devnet"
	for b in $(binaries); do targets+=("./services/$b/cmd/$b"); done
	[ ${#targets[@]} -gt 0 ] || die "Dockerfile no longer lists its binaries as \"for b in … ; do\""
	say "building ${#targets[@]} binaries and the devnet"
	(cd "$repo" && export CGO_ENABLED=0 && flags="-s -w -X perpkeeper/pkg/service.version=engine-test" &&
		nice go build -trimpath -ldflags="$flags" -o "$out/out/" "${targets[@]}" &&
		nice go build -trimpath -ldflags="$flags" -o "$out/devnet/" ./lab/devnet/cmd/devnet) || die "the binaries do not build"
	cp /etc/ssl/certs/ca-certificates.crt "$out/etc/ssl/certs/"
	tar -C "$out" -c . | docker import - perpkeeper-engine/binaries >/dev/null
	sed -n '/^FROM scratch/,$p' "$repo/Dockerfile" | sed -E 's/--from=build(-devnet)? /--from=perpkeeper-engine\/binaries /' >"$out/Dockerfile"
	grep -q 'from=perpkeeper-engine' "$out/Dockerfile" || die "Dockerfile has no last stages \"FROM scratch\" that copy from \"build\""
	stage perpkeeper-devnet devnet "$out/Dockerfile"
	stage perpkeeper keeper "$out/Dockerfile"
	rm -rf "$out"
	size
}

size() { say "perpkeeper:latest has $(docker image inspect -f '{{.Size}}' perpkeeper:latest | numfmt --to=iec)"; }

golang() {
	local tag; tag=golang:$(sed -n 's/^ARG GO_VERSION=//p' "$repo/Dockerfile")
	docker image inspect "$tag" >/dev/null 2>&1 && return
	say "building $tag"
	context golang
	cp /etc/ssl/certs/ca-certificates.crt "$work/golang/" # this machine's, should its way out have a certificate of its own
	tar -C "$work/golang" -c . -C "$(dirname "$(go env GOROOT)")" go | nice docker build -q -t "$tag" - >/dev/null 2>"$ENGINE_DIR/build.log" ||
		die "building $tag: $(tail -n 3 "$ENGINE_DIR/build.log")"
	rm -rf "$work/golang"
}

dockerfile() {
	golang
	say "building perpkeeper:latest inside Docker (all of go-ethereum is compiled: minutes)"
	"$here/engine.sh" net up
	local status=0
	# host: the engine's own namespace, which has a way out now. The second build finds what the first has compiled.
	(cd "$repo" && nice docker build --network host -t perpkeeper . && nice docker build --network host -t perpkeeper-devnet --target devnet .) \
		>"$ENGINE_DIR/dockerfile.log" 2>&1 || status=$?
	"$here/engine.sh" net down
	[ $status = 0 ] || die "docker build: $(tail -n 5 "$ENGINE_DIR/dockerfile.log")"
	docker image prune -f >/dev/null
	size
}

[ $# -gt 0 ] || { sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
for name in "$@"; do
	case $name in
	keeper) keeper ;;
	dockerfile) base; dockerfile ;;
	*) [ -d "$here/images/$name" ] || die "there is no image $name"; base; stand_in "$name" ;;
	esac
done
