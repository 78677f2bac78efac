# Sourced by run.sh: a region as an operator has it. The files are filled in from the examples in deploy/compose, below a folder of this run.
name=keeper-tokyo
files=$run/region

# compose PROJECT ARGUMENTS…: with the files of COMPOSE_FILE, which run.sh sets.
compose() { local project=$1; shift; docker compose -p "$project" "$@"; }
keeper() { compose "$name" --env-file "$files/tokyo.env" "$@"; }
sql() { docker exec "${2:-$name}-postgres-1" psql -U keeper -d keeper -At -c "$1" 2>/dev/null; }
ctl() { keeper exec -T -e PERPKEEPER_LOG_LEVEL=error sender /bin/keeperctl "$@"; }

# executed [PROJECT]: the newest block that holds an execution of its own, 0 if there is none.
executed() { sql "select coalesce(max(block), 0) from keeper.tx_receipt where outcome = 'executed'" "${1:-$name}" | grep -E '^[0-9]+$'; }
executes_after() { local b; b=$(executed "${2:-$name}") && [ "${b:-0}" -gt "$1" ]; }

# unhealthy [PROJECT]: the containers that are neither healthy nor meant to end.
unhealthy() {
	docker ps -a --filter "label=com.docker.compose.project=${1:-$name}" --format '{{.Names}}: {{.Status}}' | grep -v -e '-prepare-' | grep -v '(healthy)'
}
healthy() { ! unhealthy "${1:-$name}"; }

# members: how many members each group of the keeper has, such as "planner=2 sender=1 statevm.1=4".
members() {
	docker exec "$name-kafka-1" /opt/kafka/bin/kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9092 --describe --all-groups --members 2>/dev/null |
		awk '$1 ~ /^perp/ {n[$1]++} END {for (g in n) print g "=" n[g]}' | sort | xargs
}

books() { check "the books agree with the chain" inside python3 "$here/books.py" "http://$node:8545" "$name" "$signers" && note "$(head -n 1 "$run/check.log")"; }

# region_files fills in the example as docs/operating.md says.
region_files() {
	[ -e "$files/tokyo.env" ] && return
	local keys=$files/keys k
	install -d -m 0750 -o 65532 -g 65532 "$files" "$keys"
	for k in 0xf214f2b2cd398c806f84e317254e0f0b801d0643303237d97a22a48e01628897 0x701b615bbdfb9de65240bc28bd21bbc0d996645a3dd57e7b12bc2bdf6f192c82; do
		echo $k | docker run --rm -i -v "$keys:/keys" perpkeeper /bin/keeperctl keystore /keys --import >>"$run/signers.txt" || die "no keystore"
	done
	equal "keeperctl keystore made both keystores" "$signers" "$(paste -sd, "$run/signers.txt")"
	install -d "$files/secrets"
	printf 'http://%s:9999/slack' $node >"$files/secrets/slack_url"
	openssl rand -hex 16 | tr -d '\n' >"$files/secrets/pagerduty_key"
	openssl rand -hex 16 | tr -d '\n' >"$files/secrets/smtp_password"
	chown 65534 "$files"/secrets/*
	chmod 0400 "$files"/secrets/*
	"$repo/deploy/compose/new-secrets.sh" "$files/keeper"
	printf 'http://%s:8545\nws://%s:8545\n' $node $node >"$files/keeper/chain_urls"
	printf '[[scanner.price.source]]\nname = "demo"\nkind = "devnet"\nurl = "http://%s:8546"\n' $node >"$files/tokyo.toml"
	local set=(-e 's#^CHAIN_ID=.*#CHAIN_ID=1337#' -e "s#^KEEPER_CONFIG=.*#KEEPER_CONFIG=$files/tokyo.toml#" -e 's#^START_BLOCK=.*#START_BLOCK=1#'
		-e "s#^SECRETS_DIR=.*#SECRETS_DIR=$files/keeper#" -e "s#^KEEPER_SIGNERS=.*#KEEPER_SIGNERS=$signers#" -e "s#^KEYS_DIR=.*#KEYS_DIR=$keys#"
		-e 's#^FIRE_RATIO=.*#FIRE_RATIO=1.10#')
	for k in EVENT_EMITTER DATA_STORE ORDER_HANDLER LIQUIDATION_HANDLER DEPOSIT_HANDLER WITHDRAWAL_HANDLER; do
		set+=(-e "s#^$k=.*#$(grep "^$k=" "$repo/deploy/compose/demo.env")#")
	done
	sed "${set[@]}" "$repo/deploy/compose/region.env.example" >"$files/tokyo.env"
	cat >>"$files/tokyo.env" <<-V
		RUNBOOKS_URL=https://runbooks.example
		SLACK_URL_FILE=$files/secrets/slack_url
		PAGERDUTY_KEY_FILE=$files/secrets/pagerduty_key
		SMTP_HOST=$node
		SMTP_FROM=keeper@example.org
		SMTP_USER=keeper
		SMTP_PASSWORD_FILE=$files/secrets/smtp_password
		REPORT_TO=operator@example.org
	V
}

# region_up: a keeper that executes. What is up stays as it is.
region_up() {
	chain_up
	region_files
	check "docker compose up -d" keeper up -d || return
	within 180 "every service is healthy" healthy || { note "$(unhealthy | xargs)"; return 1; }
}
