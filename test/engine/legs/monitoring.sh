# monitoring: Prometheus finds every process, every rule and every query of the boards can be evaluated, and an alert reaches whom it is for.
leg_monitoring() {
	made "the watchers' stand-ins are made" prometheus alertmanager grafana
	region_up || return
	local slack=$run/slack.log sink
	: >"$slack"
	nsenter --net="/run/netns/$NETNS" python3 "$here/sink.py" $node 9999 "$slack" 9>&- & sink=$! # of a function it would be the shell around it
	check "docker compose --profile monitoring up -d" keeper --profile monitoring up -d
	within 120 "the watchers are healthy" healthy
	within 60 "every target is up" targets_up
	shock WETH -20 # so that liquidations are among what the board shows
	equal "every rule can be evaluated" "" "$(prom_get rules | jq -r '[.data.groups[].rules[] | select(.health == "err") | .name] | join(" ")')"
	goes_on "executes" 120
	sleep 30 # a rate wants some scrapes
	shock WETH 20
	board
	# An operator's kill counts as stopped by hand: nothing restarts it, and somebody has to be told.
	docker kill $name-scanner-1 >/dev/null
	within 120 "ProcessMissing is delivered" grep -q ProcessMissing "$slack"
	check "what was stopped starts again" keeper --profile monitoring up -d
	within 120 "all are healthy again" healthy
	within 180 "the end of the alert is delivered" eval "grep ProcessMissing '$slack' | grep -q '(over)'"
	check "the watchers are taken away" keeper --profile monitoring rm -sf prometheus alertmanager grafana
	kill $sink
}

prom_get() { inside curl -sf "http://127.0.0.1:9090/api/v1/$1"; }
query() { inside curl -s -G http://127.0.0.1:9090/api/v1/query --data-urlencode "query=${1//\$__rate_interval/1m}"; }

targets_up() {
	local t; t=$(prom_get targets | jq -r '.data.activeTargets[] | .labels.job + "=" + .health' | sort | uniq -c | awk '{print $2 "*" $1}' | xargs)
	echo "$t"
	[ "$t" = "alertmanager=up*1 console=up*1 planner=up*1 scanner=up*1 sender=up*1 statevm=up*1" ]
}

# board: each query of every board answers with something, but for those of which event-only.txt says that they show only what happens when something is wrong.
board() {
	local expr answer all=0 silent=0
	while read -r expr; do
		all=$((all + 1))
		answer=$(query "$expr")
		if [ "$(jq -r .status <<<"$answer")" != success ]; then
			fail "the board asks what Prometheus refuses: $expr"
		elif [ "$(jq '.data.result | length' <<<"$answer")" = 0 ]; then
			if grep -qxF "$expr" "$here/event-only.txt"; then silent=$((silent + 1)); else fail "the board shows nothing for: $expr"; fi
		fi
	done < <(jq -r '.panels[].targets[]?.expr' "$repo"/deploy/compose/grafana/dashboards/*.json)
	ok "the boards ask $all times, $silent of them about what has not happened"
}
