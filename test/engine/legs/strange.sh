# strange: what operators get wrong, and machines and providers that nobody here has chosen. A mistake is one clear line and an exit status; what a machine or
# a provider lacks costs time, and nothing is lost.
leg_strange() {
	region_up || return
	mistakes
	full_disk
	providers
}

# refuses WHAT WORDS COMMAND…: the command ends by itself and fails, and a line says why.
refuses() {
	local what=$1 words=$2 status=0; shift 2
	"$@" >"$run/check.log" 2>&1 || status=$?
	case $status in
	0 | 124) fail "$what: exit status $status: $(tail -n 1 "$run/check.log" | cut -c1-200)" ;;
	*)
		if grep -q -e "$words" "$run/check.log"; then
			ok "$what is refused: $(grep -o -m 1 -e "$words.*" "$run/check.log" | cut -c1-140)"
		else
			fail "$what: exit status $status, and no word of \"$words\": $(grep . "$run/check.log" | tail -n 1 | cut -c1-300)"
		fi
		;;
	esac
}

# alone SERVICE OPTIONS…: the service once more, beside the one that runs, with other settings; it has to end before it joins anything.
alone() {
	local service=$1; shift
	timeout 120 docker compose --env-file "$files/tokyo.env" run --rm -T --no-deps "$@" "$service"
}

mistakes() {
	refuses "another chain's id" 'chain id 56 is wanted, the endpoint names 1337' alone scanner -e PERPKEEPER_KEEPER_CHAIN_ID=56
	refuses "another chain's id, by the doctor" 'chain id 56 is wanted, the endpoint names 1337' \
		keeper run --rm -T --no-deps -e PERPKEEPER_KEEPER_CHAIN_ID=56 doctor --pre
	refuses "a list of headers that does not fit" 'headers: there are 1 for 2 urls' alone scanner -e PERPKEEPER_CHAIN_HEADERS=x:y -e PERPKEEPER_CHAIN_HEADERS_FILE=
	local spoilt=$run/spoilt
	spoil() { rm -rf "$spoilt"; cp -a "$files/keys" "$spoilt"; "$@"; }
	spoil sh -c 'chmod o+r "$1"/*.json' - "$spoilt"
	refuses "a key that everybody can read" 'is open to every user of this machine' alone sender -v "$spoilt:/keys:ro"
	spoil chown -R 0:0 "$spoilt"
	refuses "a key that the sender cannot read" 'permission denied' alone sender -v "$spoilt:/keys:ro"
	spoil sh -c 'rm "$1"/*.password' - "$spoilt"
	refuses "a key without its password" 'reading the password of keystore' alone sender -v "$spoilt:/keys:ro"
	rm -rf "$spoilt"
	SENDER_MEMORY=128m refuses "a sender with less memory than a keystore takes" 'opening it takes 256 MB of memory' alone sender
	goes_on "the region has not noticed" 90
}

# second_host is the same node under another address, as another provider would be.
second_host=10.99.0.1
gateways=()

# gateway ADDRESS PORT KIND…
gateway() {
	nsenter --net="/run/netns/$NETNS" python3 "$here/gateway.py" "http://$node:8545" "$@" 9>&- 2>>"$logs/gateway.log" & # not inside: $! is the process
	gateways+=($!)
}
gateways_down() { kill "${gateways[@]}" 2>/dev/null; gateways=(); }

# scanner_says WORDS: in its answer to whether it is well, which it is not.
scanner_says() {
	local said; said=$(keeper exec -T scanner /bin/keeperctl health 2>&1)
	echo "$said"
	[[ $said == *"$1"* ]]
}

# endpoints URL…: are all that the region has.
endpoints() { printf '%s\n' "$@" >"$files/secrets/tokyo/chain_urls"; }

# providers: two of them, by HTTP alone, with a key in a header, few requests a second, and short ranges of logs; then such as have dropped history.
providers() {
	local service
	inside ip addr add $second_host/32 dev lo 2>/dev/null
	cp "$files/tokyo.toml" "$run/tokyo.toml"
	printf '\n[scanner.backfill]\nmax_range = 200\n' >>"$files/tokyo.toml" # the chain is young, and history is to be read as history
	while [ "$(head_of)" -lt 250 ]; do sleep 1; done
	local secrets=$files/secrets/tokyo kept; kept=$(cat "$secrets/chain_urls")
	gateway $node 18541 header:x-api-key=hush rate:60 ranges:100
	gateway $second_host 18541 rate:60 ranges:100
	endpoints http://$node:18541 http://$second_host:18541
	refuses "an endpoint that wants a header and gets none" '401' keeper run --rm -T --no-deps doctor --pre
	printf 'x-api-key: hush\n-\n' >"$secrets/chain_headers"
	check "down -v" keeper down -v
	local from; from=$(head_of)
	check "up -d with two providers, 60 requests a second each, ranges of 100 blocks" keeper up -d
	within 300 "history is read, and orders are executed" executes_after "$from"
	within 120 "every service is healthy" healthy
	check "scaled to statevm=4 planner=3" keeper up -d --scale statevm=4 --scale planner=3
	within 120 "every copy is in its group" grouped 3 1 4
	goes_on "the copies execute" 120
	check "scaled back" keeper up -d --scale statevm=1 --scale planner=1
	for service in scanner statevm planner sender; do check "docker compose restart $service" keeper restart $service; done
	goes_on "executes after each of them was restarted" 120
	gateways_down
	within 60 "both providers gone: the scanner says so" scanner_says "no new head for" &&
		note "$(tail -n 1 "$run/check.log" | cut -c1-200)"
	gateway $node 18541 header:x-api-key=hush rate:60 ranges:100
	gateway $second_host 18541 rate:60 ranges:100
	goes_on "the providers are back: executes" 120
	gateways_down
	gateway $node 18542 prunes:200
	gateway $second_host 18542 prunes:200
	endpoints http://$node:18542 http://$second_host:18542
	: >"$secrets/chain_headers"
	check "providers without history: those that run go on" keeper up -d --force-recreate scanner sender
	goes_on "executes" 120
	refuses "a new region on providers without history" 'pruned history' keeper run --rm -T --no-deps doctor --pre
	check "down -v" keeper down -v
	check "up -d" keeper up -d
	within 60 "the scanner says what is missing" scanner_says "pruned history" &&
		note "$(tail -n 1 "$run/check.log" | cut -c1-300)"
	printf '%s\n' "$kept" >"$secrets/chain_urls"
	check "endpoints with history again" keeper up -d --force-recreate scanner sender console
	goes_on "executes" 180
	gateways_down
	# As after `lost`, these books begin in the middle of the chain's.
	check "down -v" keeper down -v
	chain_down
	cp "$run/tokyo.toml" "$files/tokyo.toml"
}

# full_disk: Kafka and Postgres on a file system that is full for a while.
full_disk() {
	local disk=$run/disk
	truncate -s 1500M "$disk.img" && mkfs.ext4 -q "$disk.img" && mkdir -p "$disk" && mount -o loop "$disk.img" "$disk" || { note "no loop device: left out"; return; }
	install -d -o 1000 "$disk/kafka"
	install -d -m 0700 -o 999 "$disk/postgres"
	cat >"$run/disk.yml" <<-Y
		volumes:
		  kafka: {driver: local, driver_opts: {type: none, o: bind, device: "$disk/kafka"}}
		  postgres: {driver: local, driver_opts: {type: none, o: bind, device: "$disk/postgres"}}
	Y
	check "down -v" keeper down -v
	chain_down # for its books: they begin with the chain
	chain_up
	local COMPOSE_FILE=$COMPOSE_FILE:$run/disk.yml
	check "up -d on a small disk" keeper up -d
	within 240 "every service is healthy" healthy || note "$(unhealthy | xargs)"
	goes_on "executes" 120
	fallocate -l "$(($(df -B1 --output=avail "$disk" | tail -n 1)))" "$disk/full" 2>/dev/null || dd if=/dev/zero of="$disk/full" bs=1M 2>/dev/null
	sleep 45
	note "full: $(df -h --output=used,avail "$disk" | tail -n 1); $(docker ps -a --format '{{.Names}}: {{.Status}}' | grep -v prepare | xargs | cut -c1-400)"
	local s
	for s in scanner statevm planner sender; do note "full, $s: $(keeper exec -T $s /bin/keeperctl health 2>&1 | head -n 1 | cut -c1-200)"; done
	rm "$disk/full"
	goes_on "there is space again: executes by itself" 240
	within 240 "every service is healthy" healthy || note "$(unhealthy | xargs)"
	books
	check "down -v" keeper down -v
	umount "$disk"
	rm -f "$disk.img"
}
