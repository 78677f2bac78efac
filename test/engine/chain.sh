# Sourced by run.sh: the chain, the exchange and the signed reports that a region uses. It is the project's devnet, a process of its own beside the engine,
# which containers reach as they would reach a node elsewhere; it outlives every container and the engine.
node=172.17.0.1 # docker0: the engine's own address
chain_dir=$run/chain
signers=0xBcd4042DE499D14e55001CcbB24a551F3b954096,0x71bE63f3384f5fb98995898A86B02Fb2426c5788 # public development accounts

chain_up() {
	runs "$chain_dir/pid" bin/devnet && return
	rm -rf "$chain_dir"
	mkdir -p "$chain_dir/bin"
	local made; made=$(docker create perpkeeper-devnet /bin/devnet) && docker cp -q "$made:/bin/devnet" "$chain_dir/bin/" 2>/dev/null || docker cp "$made:/bin/devnet" "$chain_dir/bin/"
	docker rm "$made" >/dev/null
	PERPKEEPER_LOG_FORMAT=json PERPKEEPER_HTTP_LISTEN=127.0.0.1:8088 PERPKEEPER_DEVNET_RPC=0.0.0.0:8545 PERPKEEPER_DEVNET_FEED=0.0.0.0:8546 \
		PERPKEEPER_DEVNET_HOST=$node PERPKEEPER_DEVNET_OUT=$chain_dir/deployment.json PERPKEEPER_DEVNET_LIQUIDATION_RATIO=1.10 PERPKEEPER_DEVNET_RATE=1 \
		setsid nohup nsenter --net="/run/netns/$NETNS" "$chain_dir/bin/devnet" >"$logs/devnet.log" 2>&1 </dev/null 9>&- &
	echo $! >"$chain_dir/pid"
	for _ in $(seq 120); do
		[ "$(head_of 2>/dev/null || echo 0)" -gt 3 ] && return
		runs "$chain_dir/pid" bin/devnet || break
		sleep 0.5
	done
	die "the devnet makes no blocks: $(tail -n 1 "$logs/devnet.log")"
}

chain_down() { end "$chain_dir/pid" bin/devnet; }

# rpc METHOD [PARAMS] [HOST]: the result alone.
rpc() {
	inside curl -sf -m 5 "http://${3:-$node}:8545" -H 'content-type: application/json' \
		-d "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$1\",\"params\":${2:-[]}}" | jq -re .result
}
head_of() { local n; n=$(rpc eth_blockNumber '[]' "${1:-$node}") && printf '%d' "$n"; }
shock() { rpc devnet_shock "[{\"token\":\"$1\",\"percent\":\"$2\"}]" >/dev/null; }
