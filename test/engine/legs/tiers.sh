# tiers: three keepers of one exchange, as docs/runbooks/failover.md plays them. The Master is killed, Backup-1 executes; the Master returns and executes again.
leg_tiers() {
	keeper_gone
	chain_down
	check "the network of the chain" docker network create perpkeeper-chain
	check "the chain is up" tiers_chain up -d --wait devnet || return
	local n
	for n in 1 2 3; do check "keeper$n is up" tier $n up -d || return; done
	for n in 1 2 3; do within 300 "keeper$n is healthy" healthy "$(tier_project $n)" || return; done
	node_of_tiers=$(docker inspect -f '{{(index .NetworkSettings.Networks "perpkeeper-chain").IPAddress}}' "$(tiers_chain ps -q devnet)")
	within 120 "the Master executes" tier_executes_after 0 1
	local from; from=$(head_of "$node_of_tiers")
	sleep 15
	note "executed meanwhile: Master $(tier_count 1 "$from"), Backup-1 $(tier_count 2 "$from"), Backup-2 $(tier_count 3 "$from")"
	from=$(head_of "$node_of_tiers")
	check "the Master is killed" tier 1 kill scanner statevm planner sender
	within 150 "Backup-1 has taken over" tier_executes_after "$from" 2
	from=$(head_of "$node_of_tiers")
	check "the Master comes back" tier 1 up -d
	within 300 "the Master executes again" tier_executes_after "$from" 1
	check "keeperctl audit" tier 2 run --rm -T ops audit last 5m
	twice
	for n in 1 2 3; do tier $n down -v >/dev/null 2>&1; done
	tiers_chain down -v >/dev/null 2>&1
	docker network rm perpkeeper-chain >/dev/null
}

tiers_files() { (cd "$repo" && COMPOSE_PROFILES="$1" COMPOSE_FILE=docker-compose.yml:deploy/compose/tiers/chain.yml:$here/stand-ins.yml docker compose --env-file deploy/compose/demo.env "${@:2}"); }
tiers_chain() { tiers_files demo -p keeper-chain "$@"; }
tier() { local n=$1; shift; tiers_files '' --env-file "deploy/compose/tiers/keeper$n.env" "$@"; }
tier_project() { tier "$1" config --format json 2>/dev/null | jq -r .name; }
tier_executes_after() { local b; b=$(executed "$(tier_project "$2")") && [ "${b:-0}" -gt "$1" ]; }
tier_count() { sql "select count(*) from keeper.tx_receipt where outcome = 'executed' and block > $2" "$(tier_project "$1")"; }

# twice: no order or request was executed by two keepers, by their own books.
twice() {
	local n keys=$run/keys.txt
	for n in 1 2 3; do
		sql "select distinct encode(i.key, 'hex') from keeper.tx_receipt r join keeper.tx_intent i on i.id = r.intent
			where r.final and i.kind <> 'liquidation' and r.outcome = 'executed'" "$(tier_project $n)"
	done | sort >"$keys"
	equal "of $(wc -l <"$keys") orders and requests none was executed by two" "" "$(uniq -d "$keys" | head -n 3 | xargs)"
}
