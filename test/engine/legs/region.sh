# region: from the filled-in example to transactions on the chain, and back from the chain into the books.
leg_region() {
	region_up || return
	local topics; topics=$(docker exec $name-kafka-1 /opt/kafka/bin/kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --list 2>/dev/null | grep -c '^perp\.1337\.')
	equal "prepare has made the topics" 5 "$topics"
	within 90 "an event has become a transaction that executed" executes_after 0
	within 90 "the chain's answer has come back for five of them" come_back 5
	check "keeperctl signer list" ctl signer list
	check "keeperctl audit" ctl audit last 1m
	local service
	for service in scanner statevm planner sender console; do
		equal "$service is read-only and unprivileged" "true 65532:65532" \
			"$(docker inspect -f '{{.HostConfig.ReadonlyRootfs}} {{.Config.User}}' $name-$service-1)"
	done
	no_complaints
}

come_back() { [ "$(sql "select count(*) from keeper.tx_intent where state = 'FINAL_OK' and reported_at is not null")" -ge "$1" ]; }

# no_complaints: a region that has just come up has nothing to warn of.
no_complaints() {
	local service lines
	for service in scanner statevm planner sender console; do
		lines=$(docker logs $name-$service-1 2>&1 | grep -E '"level":"(error|fatal|panic)"' | head -n 1 | cut -c1-300)
		[ -z "$lines" ] || note "$service says: $lines"
	done
}
