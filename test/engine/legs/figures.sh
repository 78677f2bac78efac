# figures: what a region costs in memory, processor and disk, measured by the kernel's own counters.
leg_figures() {
	region_up || return
	growth 30
	figures "one of each"
}

# figures WHAT: of each container the memory in use, the most it ever was, and the share of one processor since it started.
figures() {
	local c
	note "$1: memory now / at most, processor time by time since start"
	for c in $(docker ps -q --filter label=com.docker.compose.project="$name"); do
		note "  $(docker inspect -f '{{index .Config.Labels "com.docker.compose.service"}}' "$c"): $(megabytes "$c" now) / $(megabytes "$c" most) MB, $(processor "$c") %"
	done
}

counter() { # counter CONTAINER FILE-OF-VERSION-1 FILE-OF-VERSION-2
	cat "/sys/fs/cgroup/$2" 2>/dev/null || cat "/sys/fs/cgroup/docker/$1/$3" 2>/dev/null
}

megabytes() {
	local id; id=$(docker inspect -f '{{.Id}}' "$1")
	case $2 in
	now) counter "$id" "memory/docker/$id/memory.stat" memory.stat | awk '$1 == "rss" || $1 == "anon" {print int($2 / 1e6); exit}' ;;
	most) counter "$id" "memory/docker/$id/memory.max_usage_in_bytes" memory.peak | awk '{print int($1 / 1e6)}' ;;
	esac
}

# processor: percent of one processor, from the start of the container until now.
processor() {
	local id spent since; id=$(docker inspect -f '{{.Id}}' "$1")
	spent=$(counter "$id" "cpuacct/docker/$id/cpuacct.usage" cpu.stat | awk 'NF == 1 {print $1 / 1e9} $1 == "usage_usec" {print $2 / 1e6}')
	since=$(($(date +%s) - $(date -d "$(docker inspect -f '{{.State.StartedAt}}' "$1")" +%s)))
	awk -v s="${spent:-0}" -v t="$since" 'BEGIN {printf "%.1f", 100 * s / (t + 1)}'
}

# growth SECONDS: how many bytes a block adds to the log topic and to the database, with the traders at work and at rest.
growth() {
	local seconds=$1 traders from log database blocks
	for traders in true false; do
		rpc devnet_trade "[{\"on\":$traders}]" >/dev/null
		sleep 10 # what is under way comes to an end
		from=$(head_of) log=$(topic_bytes) database=$(sql "select pg_database_size('keeper')")
		sleep "$seconds"
		blocks=$(($(head_of) - from))
		note "traders $traders: $blocks blocks, $((($(topic_bytes) - log) / blocks)) bytes a block in the log topic, $((($(sql "select pg_database_size('keeper')") - database) / blocks)) in Postgres"
	done
	rpc devnet_trade '[{"on":true}]' >/dev/null
}

# topic_bytes: of the log topic's segments, without their preallocated indexes.
topic_bytes() { docker exec "$name-kafka-1" bash -c 'cat /var/lib/kafka/data/perp.*.log.v1-*/*.log | wc -c'; }
