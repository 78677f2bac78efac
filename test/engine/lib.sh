# Sourced by the scripts of this folder: where things lie, how the engine is reached, and how a check is told.
#
# Everything is below ENGINE_DIR; `make engine-clean` removes all of it. What stays is Debian packages.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)
ENGINE_DIR=${ENGINE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/perpkeeper-engine}
NETNS=perpkeeper-engine
export DOCKER_HOST=unix://$ENGINE_DIR/docker.sock
export DOCKER_CONFIG=$ENGINE_DIR/cli # holds the compose plugin; no login, no credentials
export DOCKER_BUILDKIT=0             # the classic builder needs no plugin
logs=$ENGINE_DIR/logs

# Exit status of what this machine cannot do, as opposed to what has failed. Automake's harness has the same.
UNABLE=77

say() { echo "[$(date +%T)] $*" >&2; }
die() { say "$*"; exit 1; }
unable() { say "not possible on this machine: $*"; exit $UNABLE; }

# A process of ours by the file that holds its number, and by what its command line must contain.
runs() { local pid; pid=$(cat "$1" 2>/dev/null) && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q -- "$2"; }

# end FILE WORD: ends the process of ours and waits until it is gone.
end() {
	runs "$1" "$2" || { rm -f "$1"; return 0; }
	local pid; pid=$(cat "$1")
	kill "$pid"
	for _ in $(seq 300); do [ -d "/proc/$pid" ] || break; sleep 0.2; done
	[ ! -d "/proc/$pid" ] || { say "$2 (pid $pid) has not ended after 60 s"; return 1; }
	rm -f "$1"
}

# The Debian mirror of this machine; testing and unstable lie beside its stable release.
mirror() { apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -v security | grep debian | sort -u | head -n 1; }

# inside COMMAND…: where the published ports and the containers can be reached.
inside() { nsenter --net="/run/netns/$NETNS" "$@"; }
