# again: `down` and `up -d` keep the state.
leg_again() {
	region_up || return
	local before; before=$(executed)
	check "docker compose down" keeper down
	check "docker compose up -d" keeper up -d
	within 120 "the books of before are there" executes_after $((before - 1))
	goes_on "executes what came meanwhile and after" 150
	books
}

# reboot: the engine ends and starts, as when the machine does; nobody starts a container.
leg_reboot() {
	region_up || return
	check "the engine ends" "$here/engine.sh" stop
	check "the engine starts" "$here/engine.sh" up
	within 180 "all are up and healthy by themselves" healthy
	goes_on "executes" 150
	books
}

# rebuild: a second generation of the state beside the first, equal to it, and in its place.
leg_rebuild() {
	region_up || return
	check "keeperctl rebuild" ctl rebuild || return
	local next; next=$(ctl generations list 2>/dev/null | awk '$2 == "filling" {print $1}')
	check "keeperctl generations compare" ctl generations compare $((next - 1)) "$next"
	check "keeperctl generations switch" ctl generations switch "$next"
	goes_on "executes on generation $next"
	check "keeperctl generations drop" ctl generations drop $((next - 1))
}

# lost: all data of the region are gone; the record is made anew from the chain, and nonces go on from the chain's.
leg_lost() {
	region_up || return
	check "docker compose down -v" keeper down -v
	local from at next; from=$(head_of)
	check "docker compose up -d" keeper up -d
	within 240 "executes on a record made anew from the chain" executes_after "$from"
	at=$(rpc eth_getTransactionCount "[\"${signers%%,*}\",\"latest\"]")
	next=$(sql "select next_nonce from keeper.signer_lease where encode(signer, 'hex') = lower('${signers:2:40}')")
	check "the next nonce, $next, goes on from the chain's, $((at))" eval "[ $((next - at)) -ge 0 ] && [ $((next - at)) -lt 40 ]"
	# These books begin in the middle of the chain's: whoever comes next has others, of another chain.
	check "docker compose down -v" keeper down -v
	chain_down
}
