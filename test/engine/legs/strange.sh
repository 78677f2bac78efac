# strange: what operators get wrong, and machines that nobody here has chosen. A mistake is one clear line and an exit status; what a machine lacks costs time,
# and nothing is lost.
leg_strange() {
	region_up || return
	mistakes
	full_disk
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
