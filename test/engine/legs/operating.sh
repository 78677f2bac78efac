# operating: docs/operating.md, every block of commands in its order, in a checkout of its own, for the region it speaks of.
leg_operating() {
	made "the watchers' stand-ins are made" prometheus alertmanager grafana
	chain_up
	keeper_gone
	local COMPOSE_FILE=docker-compose.yml:$here/stand-ins.yml
	checkout
	play sh
	within 60 "after the last block nothing is left of the region" nothing_left
}

# checkout copies what is tracked, and what is new, to where the blocks are run.
checkout() {
	book=$run/checkout
	rm -rf "$book"
	mkdir -p "$book" "$run/blocks"
	(cd "$repo" && git ls-files -co --exclude-standard -z | tar --null --ignore-failed-read -T - -c) 2>/dev/null | tar -C "$book" -x
	: >"$run/shell"
}

# play KIND: each block in a shell that knows what those before have exported. The first that fails ends it.
play() {
	local block before after
	rm -f "$run"/blocks/*
	awk -v kind="$1" -v folder="$run/blocks" -f "$here/blocks.awk" "$repo/docs/operating.md"
	for block in "$run"/blocks/*.sh; do
		before=${block%.sh}.before
		[ ! -e "$before" ] || "before_$(cat "$before")" || return
		check "line $(basename "$block" .sh | sed 's/^0*//'): $(head -n 1 "$block" | cut -c1-90)" run_block "$block" || return
		[ ! -e "$before" ] || after=after_$(cat "$before")
		[ ! -e "$before" ] || ! declare -F "$after" >/dev/null || "$after" || return
	done
}

run_block() {
	(cd "$book" && inside timeout 900 bash -euo pipefail -c '. "$1"; set -a; . "$2"; set +a; export -p >"$1"' - "$run/shell" "$1")
}

# before_init answers what keeperctl init asks; fill_in has the devnet's own signers afterwards.
before_init() {
	printf '%s\n' "http://$node:8545" "$(sed -n 's/^DATA_STORE=//p' "$repo/deploy/compose/demo.env")" '' 1 '' '' "devnet=http://$node:8546" >"$run/answers"
	echo "exec <$run/answers" >>"$run/shell"
}

# before_exchange does what the document asks the operator to do by hand.
before_exchange() { fill_in "$book/deploy/compose" "$book/deploy/compose/keys/tokyo"; }

before_watchers() { fill_in_watchers "$book/deploy/compose/tokyo.env"; }

# before_settle waits until the backup is older than the newest transaction, so that there is something to resync.
before_settle() { goes_on "something newer than the backup is executed" 120; }

nothing_left() { [ -z "$(docker ps -aq --filter label=com.docker.compose.project=$name)$(docker volume ls -q --filter label=com.docker.compose.project=$name)" ]; }
keeper_gone() { docker ps -aq --filter label=com.docker.compose.project=$name | xargs -r docker rm -f -v >/dev/null; docker volume ls -q --filter label=com.docker.compose.project=$name | xargs -r docker volume rm >/dev/null; }
