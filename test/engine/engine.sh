#!/usr/bin/env bash
# A Docker engine for tests, by hand, in a network namespace of its own: nothing of the host's network, firewall or other engines is touched.
#
#   engine.sh up         install what is missing (Debian's docker.io; Compose v2 from Debian sid), start dockerd, wait until it answers
#   engine.sh net up     give the namespace a way out (slirp4netns), for builds that fetch modules; `net down` takes it away again
#   engine.sh down       end dockerd, and with it every container, and remove the namespace; images and volumes stay
#   engine.sh stop       end dockerd alone, as a reboot would; the namespace stays
#   engine.sh env        print what a shell needs to use it:  eval "$(test/engine/engine.sh env)"
#
# To reach a published port from outside:  nsenter --net=/run/netns/perpkeeper-engine curl http://127.0.0.1:9090
# Needs root, Debian with its mirror, and for `net up` /dev/net/tun. Idempotent. Exit status 77: this machine cannot.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# able names the first thing this machine lacks, before anything is installed or changed.
able() {
	[ "$(id -u)" = 0 ] || unable "an engine needs root"
	command -v apt-get >/dev/null && [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] || unable "it is not Debian"
	[ -n "$(mirror)" ] || unable "no Debian mirror is configured"
	[ -d /sys/fs/cgroup/memory ] || [ -f /sys/fs/cgroup/cgroup.controllers ] || unable "no control groups are mounted"
	grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || unable "the kernel has no overlay file system"
	local free; free=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
	[ "$free" -ge 5000 ] || unable "$free MB of memory are free, and a keeper with its Kafka and Postgres needs 5000"
	free=$(df -Pm "$ENGINE_DIR" | awk 'NR == 2 {print $4}')
	[ "$free" -ge 8000 ] || unable "$free MB of disk are free below $ENGINE_DIR, and images and volumes need 8000"
}

packages() {
	local missing=() p
	for p in docker.io iptables slirp4netns mmdebstrap jq iproute2 curl; do dpkg -s "$p" >/dev/null 2>&1 || missing+=("$p"); done
	[ ${#missing[@]} = 0 ] && return
	say "installing ${missing[*]}"
	{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$ENGINE_DIR/apt.log" 2>&1 ||
		unable "apt-get: $(tail -n 3 "$ENGINE_DIR/apt.log")"
}

# sid fetches single packages of Debian unstable, whose lists it reads beside the machine's; they are unpacked and never installed.
sid() {
	local d=$ENGINE_DIR/sid
	mkdir -p "$d/lists/partial" "$d/cache/archives/partial" "$d/debs" "$d/x"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) sid main" >"$d/sources.list"
	local o=(-q -o Dir::Etc::sourcelist="$d/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$d/lists" -o Dir::Cache="$d/cache"
		-o APT::Sandbox::User=root)
	{ apt-get "${o[@]}" update && (cd "$d/debs" && apt-get "${o[@]}" download "$@"); } >"$ENGINE_DIR/sid.log" 2>&1 ||
		unable "fetching $* from Debian sid: $(tail -n 3 "$ENGINE_DIR/sid.log")"
	local deb
	for deb in "$d"/debs/*.deb; do dpkg-deb -x "$deb" "$d/x"; done
}

# Compose v2 is in no stable Debian yet; its binary from sid needs only libc. Prometheus 3 comes with it, for images.sh.
compose() {
	local plugin=$DOCKER_CONFIG/cli-plugins/docker-compose
	[ -x "$plugin" ] && return
	say "fetching Docker Compose v2 and Prometheus 3 from Debian sid"
	sid docker-compose prometheus
	mkdir -p "$DOCKER_CONFIG/cli-plugins"
	cp "$ENGINE_DIR/sid/x/usr/libexec/docker/cli-plugins/docker-compose" "$plugin"
	docker compose version >/dev/null 2>&1 || { rm "$plugin"; unable "Debian sid's Docker Compose does not run here"; }
}

up() {
	mkdir -p "$ENGINE_DIR"
	able
	packages
	compose
	[ -e "/run/netns/$NETNS" ] || ip netns add "$NETNS" 2>"$ENGINE_DIR/netns.log" || unable "a network namespace: $(cat "$ENGINE_DIR/netns.log")"
	inside ip link set lo up
	if ! runs "$ENGINE_DIR/docker.pid" dockerd; then
		# nsenter and not `ip netns exec`: that one hides the control groups below a new /sys.
		setsid nohup nsenter --net="/run/netns/$NETNS" dockerd -H "$DOCKER_HOST" --data-root "$ENGINE_DIR/data" --exec-root "$ENGINE_DIR/exec" \
			--pidfile "$ENGINE_DIR/docker.pid" --exec-opt native.cgroupdriver=cgroupfs >>"$ENGINE_DIR/dockerd.log" 2>&1 </dev/null 9>&- &
	fi
	for _ in $(seq 120); do
		docker info >/dev/null 2>&1 && { say "the engine is up: Docker $(docker version -f '{{.Server.Version}}'), Compose $(docker compose version --short)"; return; }
		sleep 0.5
	done
	unable "dockerd does not answer: $(tail -n 5 "$ENGINE_DIR/dockerd.log")"
}

net() {
	case ${1:-} in
	up)
		runs "$ENGINE_DIR/slirp.pid" slirp4netns && return
		[ -c /dev/net/tun ] || unable "there is no /dev/net/tun for the engine's way out"
		setsid nohup slirp4netns --configure --mtu=65520 --disable-host-loopback --netns-type=path "/run/netns/$NETNS" tap0 >"$ENGINE_DIR/slirp.log" 2>&1 </dev/null 9>&- &
		echo $! >"$ENGINE_DIR/slirp.pid"
		for _ in $(seq 50); do inside ip route | grep -q default && return; sleep 0.1; done
		unable "slirp4netns gave no route: $(tail -n 3 "$ENGINE_DIR/slirp.log")"
		;;
	down) end "$ENGINE_DIR/slirp.pid" slirp4netns ;;
	*) die "net up|down" ;;
	esac
}

stop() { end "$ENGINE_DIR/docker.pid" dockerd || die "the engine does not end"; }

down() {
	net down
	stop
	umount "$ENGINE_DIR"/exec/netns/* 2>/dev/null || true # dockerd leaves them mounted
	[ ! -e "/run/netns/$NETNS" ] || ip netns del "$NETNS"
}

case ${1:-} in
up) up ;;
down) down ;;
stop) stop ;;
net) net "${2:-}" ;;
env) echo "export DOCKER_HOST=$DOCKER_HOST DOCKER_CONFIG=$DOCKER_CONFIG DOCKER_BUILDKIT=0" ;;
*) sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
