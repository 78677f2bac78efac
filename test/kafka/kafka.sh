#!/usr/bin/env bash
# Apache Kafka on this machine, without Docker: one broker, or a cluster of three.
#
#   kafka.sh up [1|3]         start (fresh, unless it is running), and wait until it writes, reads and forms groups
#   kafka.sh down             stop and delete the data; the logs stay
#   kafka.sh env              print what tests need to find it:  eval "$(test/kafka/kafka.sh env)"
#   kafka.sh stop|kill [id…]  stop brokers in an orderly way, or kill them, keeping their data; all of them unless named
#   kafka.sh start [id…]      start brokers again on their data, without waiting for them
#   kafka.sh lib              fetch Kafka's jars if they are missing, and print their folder
#
# Needs Java 17 or later, Maven and Go. Everything is below KAFKA_DIR (default: .cache/kafka in the repository); brokers listen on 127.0.0.1 from
# KAFKA_PORT (default 19092) on, their controllers 100 above.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)
dir=${KAFKA_DIR:-$repo/.cache/kafka}
port=${KAFKA_PORT:-19092}
lib=$dir/lib
run=$dir/run   # gone after down; run/nodes holds the number of brokers
logs=$dir/logs

say() { echo "kafka: $*" >&2; }
die() { say "$*"; exit 1; }

need() {
	command -v java >/dev/null || die "Java is missing: install Java 17 or later (Debian: apt-get install openjdk-17-jre-headless)"
	local version
	version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
	[ "${version:-0}" -ge 17 ] || die "Java ${version:-of unknown version} is too old: install Java 17 or later (Debian: apt-get install openjdk-17-jre-headless)"
	command -v go >/dev/null || die "Go is missing: install it from https://go.dev/dl"
}

# fetch puts Kafka's jars into lib, once per version of the pom.
fetch() {
	cmp -s "$here/pom.xml" "$lib/pom.xml" && return
	command -v mvn >/dev/null || die "Maven is missing: install it (Debian: apt-get install maven)"
	say "fetching Apache Kafka from Maven Central (45 MB, once)"
	rm -rf "$lib"
	mvn -q -B -f "$here/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$lib" >&2 || die "Maven could not fetch Apache Kafka (see above)"
	cp "$here/pom.xml" "$lib/pom.xml"
}

nodes() { cat "$run/nodes" 2>/dev/null || echo 0; }
all() { seq 1 "$(nodes)"; }

# alive tells whether a broker of this directory runs; a process that merely has its number does not count.
alive() {
	local pid args
	pid=$(cat "$run/$1/pid" 2>/dev/null) || return 1
	args=$({ tr '\0' ' ' <"/proc/$pid/cmdline" || ps -p "$pid" -o args=; } 2>/dev/null) || return 1
	[[ "$args" == *"$run/$1/server.properties"* ]]
}

addresses() {
	local list=()
	for id in $(all); do list+=("127.0.0.1:$((port + id - 1))"); done
	(IFS=,; echo "${list[*]}")
}

# configure writes a broker's settings and formats its data directory. Topics may be created by asking for them, as Kafka's default is: tests
# show that nothing of ours does.
configure() {
	local id=$1 count=$2 cluster=$3 voters=() copies=$2
	for v in $(seq 1 "$count"); do voters+=("$v@127.0.0.1:$((port + 100 + v - 1))"); done
	mkdir -p "$run/$id" "$logs"
	cat >"$run/$id/server.properties" <<-EOF
		process.roles=broker,controller
		node.id=$id
		controller.quorum.voters=$(IFS=,; echo "${voters[*]}")
		listeners=PLAINTEXT://127.0.0.1:$((port + id - 1)),CONTROLLER://127.0.0.1:$((port + 100 + id - 1))
		advertised.listeners=PLAINTEXT://127.0.0.1:$((port + id - 1))
		controller.listener.names=CONTROLLER
		listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
		log.dirs=$run/$id/data
		default.replication.factor=$copies
		min.insync.replicas=$(((copies + 1) / 2))
		offsets.topic.replication.factor=$copies
		offsets.topic.num.partitions=4
		transaction.state.log.replication.factor=$copies
		transaction.state.log.min.isr=$(((copies + 1) / 2))
		transaction.state.log.num.partitions=4
		share.coordinator.state.topic.replication.factor=$copies
		share.coordinator.state.topic.min.isr=$(((copies + 1) / 2))
		group.initial.rebalance.delay.ms=0
	EOF
	java -Xmx256m -cp "$lib/*" "-Dlog4j2.configurationFile=$here/log4j2.properties" \
		kafka.tools.StorageTool format -t "$cluster" -c "$run/$id/server.properties" >>"$logs/format.log" 2>&1 ||
		die "formatting the data of broker $id failed (see $logs/format.log)"
}

start() {
	local id
	for id in "$@"; do
		[ -f "$run/$id/server.properties" ] || die "there is no broker $id (kafka.sh up first)"
		alive "$id" && continue
		# Not a child of the caller's session: it must outlive it, and a signal to the caller's group must not reach it.
		setsid nohup java -Xms128m -Xmx512m -cp "$lib/*" "-Dlog4j2.configurationFile=$here/log4j2.properties" \
			kafka.Kafka "$run/$id/server.properties" >>"$logs/broker-$id.log" 2>&1 </dev/null &
		echo $! >"$run/$id/pid"
	done
}

# end signals brokers and returns when they are gone.
end() {
	local signal=$1 id; shift
	for id in "$@"; do alive "$id" && kill "-$signal" "$(cat "$run/$id/pid")"; done
	for id in "$@"; do
		for _ in $(seq 200); do alive "$id" || break; sleep 0.1; done
		if alive "$id"; then
			say "broker $id did not end within 20 s, killing it"
			kill -KILL "$(cat "$run/$id/pid")"
			while alive "$id"; do sleep 0.1; done
		fi
	done
}

# await returns when the cluster really works: a batch is written to all copies and read back, and a group forms.
await() {
	local id begun=$SECONDS
	(cd "$repo" && go build -o "$dir/ready" ./test/kafka/ready)
	until "$dir/ready" -brokers "$(addresses)" -timeout 5s 2>"$logs/ready.log"; do
		for id in $(all); do
			alive "$id" || die "broker $id has ended: $(grep -m 1 -E 'ERROR|FATAL|Exception' "$logs/broker-$id.log" || echo "see $logs/broker-$id.log")"
		done
		[ $((SECONDS - begun)) -lt 120 ] || die "not ready after 120 s: $(tail -n 1 "$logs/ready.log") (see $logs)"
		say "waiting: $(tail -n 1 "$logs/ready.log")"
	done
}

up() {
	local count=${1:-1} cluster
	[[ "$count" == 1 || "$count" == 3 ]] || die "up takes 1 or 3 brokers, not $count"
	need
	if [ "$(nodes)" != 0 ] && [ "$(nodes)" != "$count" ]; then die "$(nodes) broker(s) are up; run kafka.sh down first"; fi
	fetch
	if [ "$(nodes)" = 0 ]; then
		rm -rf "$run" "$logs"
		cluster=A$(head -c 64 /dev/urandom | base64 | tr -dc 'A-Za-z0-9' | head -c 20)A # 22 characters of URL-safe base64: 16 bytes
		say "starting $count broker(s), from port $port"
		for id in $(seq 1 "$count"); do configure "$id" "$count" "$cluster"; done
		echo "$count" >"$run/nodes"
	fi
	# shellcheck disable=SC2046
	start $(all)
	await
	say "ready: $(addresses)"
}

down() {
	# shellcheck disable=SC2046
	[ "$(nodes)" = 0 ] || end TERM $(all)
	rm -rf "$run"
	say "down; logs are in $logs"
}

env_() {
	[ "$(nodes)" != 0 ] || die "not running (kafka.sh up first)"
	echo "export KAFKA_BROKERS=$(addresses)"
}

command=${1:-}
[ $# -gt 0 ] && shift
# shellcheck disable=SC2046
[ $# -gt 0 ] || case $command in stop | kill | start) set -- $(all) ;; esac
case $command in
up) up "$@" ;;
down) down ;;
env) env_ ;;
lib) need && fetch && echo "$lib" ;;
start) start "$@" ;;
stop) end TERM "$@" ;;
kill) end KILL "$@" ;;
*) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
