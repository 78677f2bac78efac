# Sourced by run.sh: a region as an operator has it. The files are filled in from the examples in deploy/compose, below a folder of this run.
name=keeper-tokyo
files=$run/region

# keeper ARGUMENTS…: with the files of COMPOSE_FILE, which run.sh sets; the project's name is that of the region.
keeper() { docker compose --env-file "$files/tokyo.env" "$@"; }
sql() { docker exec "${2:-$name}-postgres-1" psql -U keeper -d keeper -At -c "$1" 2>/dev/null; }
ctl() { keeper run --rm -T ops "$@"; }

# executed [PROJECT]: the newest block that holds an execution of its own, 0 if there is none.
executed() { sql "select coalesce(max(block), 0) from keeper.tx_receipt where outcome = 'executed'" "${1:-$name}" | grep -E '^[0-9]+$'; }
executes_after() { local b; b=$(executed "${2:-$name}") && [ "${b:-0}" -gt "$1" ]; }

# unhealthy [PROJECT]: the containers that are neither healthy nor meant to end.
unhealthy() {
	docker ps -a --filter "label=com.docker.compose.project=${1:-$name}" --format '{{.Names}}: {{.Status}}' | grep -v -e '-prepare-' -e '-ops-run-' | grep -v '(healthy)'
}
# healthy [PROJECT]: it has containers, and all of them are.
healthy() {
	[ -n "$(docker ps -q --filter "label=com.docker.compose.project=${1:-$name}")" ] || { echo "nothing runs of ${1:-$name}"; return 1; }
	! unhealthy "${1:-$name}"
}

# members: how many members each group of the keeper has, such as "planner=2 sender=1 statevm.1=4".
members() {
	docker exec "$name-kafka-1" /opt/kafka/bin/kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9092 --describe --all-groups --members 2>/dev/null |
		awk '$1 ~ /^perp/ {n[$1]++} END {for (g in n) print g "=" n[g]}' | sort | xargs
}

books() { check "the books agree with the chain" inside python3 "$here/books.py" "http://$node:8545" "$name" "$signers" && note "$(head -n 1 "$run/check.log")"; }

# region_files makes a region as docs/operating.md says, beside the checkout.
region_files() {
	[ -e "$files/tokyo.env" ] && return
	install -d "$files"
	cp "$repo/deploy/compose/region.env.example" "$files/tokyo.env"
	cp "$repo/deploy/compose/region.toml.example" "$files/tokyo.toml"
	"$repo/deploy/compose/new-secrets.sh" "$files/secrets/tokyo" 2>/dev/null
	put "$files/tokyo.env" KEEPER_CONFIG="$files/tokyo.toml" SECRETS_DIR="$files/secrets/tokyo"
	fill_in "$files" "$files/keys"
	fill_in_watchers "$files/tokyo.env"
}

# put FILE NAME=VALUE…: sets variables of an env file, those that are commented out as well.
put() {
	local file=$1 pair; shift
	for pair in "$@"; do
		grep -qE "^#?${pair%%=*}=" "$file" || echo "${pair%%=*}=" >>"$file"
		sed -i -E "s|^#?${pair%%=*}=.*|${pair//&/\\&}|" "$file"
	done
}

# fill_in FOLDER KEYS writes into tokyo.env, tokyo.toml and secrets/tokyo what an operator has to know: here the devnet's chain, exchange and price service,
# and keystores of two of its keeper accounts.
fill_in() {
	local folder=$1 keys=$2 key
	rm -rf "$keys"
	install -d -m 0750 -o 65532 -g 65532 "$keys"
	: >"$run/signers.txt"
	for key in 0xf214f2b2cd398c806f84e317254e0f0b801d0643303237d97a22a48e01628897 0x701b615bbdfb9de65240bc28bd21bbc0d996645a3dd57e7b12bc2bdf6f192c82; do
		echo $key | docker run --rm -i --network none -v "$keys:/keys" perpkeeper /bin/keeperctl keystore /keys --import >>"$run/signers.txt"
	done
	equal "keeperctl keystore takes given keys" "$signers" "$(paste -sd, "$run/signers.txt")" || return
	# shellcheck disable=SC2046
	put "$folder/tokyo.env" CHAIN_ID=1337 START_BLOCK=1 FIRE_RATIO=1.10 KEEPER_SIGNERS=$signers KEYS_DIR="$keys" \
		$(grep '^DATA_STORE=' "$repo/deploy/compose/demo.env") $(grep -E '^[A-Z]+_ROLE=' "$repo/deploy/compose/demo.env")
	printf 'http://%s:8545\nws://%s:8545\n' $node $node >"$folder/secrets/tokyo/chain_urls"
	sed -i '/^\[\[scanner\.price\.source\]\]/,/^# Who is paid/{/^# Who is paid/!d}' "$folder/tokyo.toml"
	cat >>"$folder/tokyo.toml" <<-T

		[[scanner.price.source]]
		name = "signed"
		kind = "devnet"
		url = "http://$node:8546"
	T
}

# fill_in_watchers FILE names whom to tell: a sink of this test.
fill_in_watchers() {
	local secrets=$run/watchers
	install -d "$secrets"
	printf 'http://%s:9999/slack' $node >"$secrets/slack_url"
	openssl rand -hex 16 | tr -d '\n' >"$secrets/pagerduty_key"
	openssl rand -hex 16 | tr -d '\n' >"$secrets/smtp_password"
	chown 65534 "$secrets"/*
	chmod 0400 "$secrets"/*
	put "$1" SLACK_URL_FILE="$secrets/slack_url" PAGERDUTY_KEY_FILE="$secrets/pagerduty_key" SMTP_PASSWORD_FILE="$secrets/smtp_password" \
		SMTP_HOST=$node SMTP_FROM=keeper@example.org SMTP_USER=keeper REPORT_TO=operator@example.org RUNBOOKS_URL=https://git.example.org/runbooks
}

# region_up: a keeper that executes. What is up stays as it is.
region_up() {
	chain_up
	region_files
	check "docker compose up -d" keeper up -d || return
	within 180 "every service is healthy" healthy || { note "$(unhealthy | xargs)"; return 1; }
}
