#!/usr/bin/env bash
# Runs docker-compose.yml on a Docker engine of its own as an operator would, and holds what the keeper does against the chain: `make engine-test`.
#
#   run.sh [LEG…]    the legs in the order given; by default all of them
#   run.sh short     region scale kill, with binaries built outside Docker: what continuous integration runs; a quarter of an hour at most
#   run.sh clean     end the engine and remove everything these tests have made, but Debian's packages
#
LEGS="image region figures scale second faults again reboot rebuild monitoring lost strange operating external tiers"
# Each leg is a function of legs/LEG.sh; README.md says what each of them shows. A leg that is run alone brings the region up first. After the run the
# containers, volumes and the engine are gone; images are kept for the next run, and what failing containers have said is in $ENGINE_DIR/logs.
#
# Exit status: 0 all as expected, 1 something was not, 77 this machine cannot run an engine.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
run=$ENGINE_DIR/run
export COMPOSE_FILE=$repo/docker-compose.yml:$here/stand-ins.yml
unset PERPKEEPER_LOG_LEVEL COMPOSE_PROFILES
leg=run
. "$here/check.sh"
. "$here/chain.sh"
. "$here/keeper.sh"
for file in "$here"/legs/*.sh; do . "$file"; done

# keep_logs: what every container has said, while it is there.
keep_logs() {
	local c to=$logs/$1
	mkdir -p "$to"
	docker ps -a --format 'table {{.Names}}\t{{.Status}}' >"$to/containers.txt"
	for c in $(docker ps -aq --filter label=com.docker.compose.project); do
		docker logs "$c" >"$to/$(docker inspect -f '{{.Name}}' "$c" | tr -d /).log" 2>&1
	done
}

# remove_all: every container, network and volume of this engine, which serves nothing but these tests.
remove_all() {
	docker ps -aq | xargs -r docker rm -f -v
	docker network prune -f
	docker volume ls -q | xargs -r docker volume rm
} >/dev/null 2>&1

over() {
	trap - EXIT INT TERM
	jobs -p | xargs -r kill 2>/dev/null
	chain_down
	docker info >/dev/null 2>&1 && remove_all
	"$here/engine.sh" down
	umount "$run/disk" 2>/dev/null # of a leg that was ended
	rm -rf "$run"
}

clean() {
	over
	rm -rf "$ENGINE_DIR"
	say "everything below $ENGINE_DIR is removed"
}

run_leg() {
	leg=$1
	local began=$SECONDS before=${#failed[@]}
	if [ $SECONDS -lt "$deadline" ]; then "leg_$1"; else fail "not begun: the run has taken $SECONDS s already"; fi
	times+=("$(printf '%-11s %4d s' "$1" $((SECONDS - began)))")
	[ ${#failed[@]} = "$before" ] || { keep_logs "$1"; say "what the containers have said is in $logs/$1"; }
	leg=run
}

summary() {
	echo
	printf '%s\n' "${times[@]}"
	echo "$checks checks, ${#failed[@]} failed, after $SECONDS s"
	[ ${#failed[@]} = 0 ] || printf 'FAILED %s\n' "${failed[@]}"
}

case ${1:-} in
clean) clean; exit ;;
-h | --help | help) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
short)
	set -- prebuilt region scale kill
	deadline=1500
	;;
'') set -- $LEGS ;;
esac
for l in "$@"; do declare -F "leg_$l" >/dev/null || die "there is no leg $l; there are: $LEGS prebuilt kill"; done

mkdir -p "$ENGINE_DIR"
exec 9>"$ENGINE_DIR/lock"
flock -n 9 || die "another run uses $ENGINE_DIR"
"$here/engine.sh" up 9>&- || exit
trap 'exit 130' INT TERM
trap over EXIT
remove_all
rm -rf "$run" "$logs"
mkdir -p "$run" "$logs"
times=()
for l in "$@"; do run_leg "$l"; done
summary
[ ${#failed[@]} = 0 ]
