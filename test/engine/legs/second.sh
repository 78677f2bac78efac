# second: a region that is started again from another folder is the same keeper, and another keeper on the same signers is refused by its sender.
leg_second() {
	region_up || return
	goes_on "the first keeper executes" 120 || return
	local before; before=$(containers)
	mkdir -p "$run/elsewhere"
	cp -r "$repo/docker-compose.yml" "$repo/deploy" "$run/elsewhere/"
	check "docker compose up -d in another folder" elsewhere up -d --no-recreate
	equal "it is the same keeper: no container is new" "$before" "$(containers)"
	cp "$files/tokyo.env" "$files/osaka.env"
	put "$files/osaka.env" KEEPER_NAME=osaka
	check "a keeper of another name with the same signers" osaka up -d sender
	within 240 "its sender is refused" refused && note "$(tail -n 1 "$run/check.log" | jq -r '.error // .message' 2>/dev/null | cut -c1-200)"
	goes_on "the first keeper goes on" 90
	check "the other one is taken away" osaka down -v
}

containers() { docker ps -q --filter label=com.docker.compose.project=$name | sort | xargs; }
elsewhere() { (cd "$run/elsewhere" && COMPOSE_FILE=docker-compose.yml:$here/stand-ins.yml keeper "$@"); }
osaka() { docker compose --env-file "$files/osaka.env" "$@"; }

# refused: the sender has ended, with a word on why, and has sent nothing.
refused() {
	docker logs keeper-osaka-sender-1 2>&1 | tail -n 3
	docker logs keeper-osaka-sender-1 2>&1 | grep -m 1 'is in use elsewhere' &&
		[ "$(sql "select count(*) from keeper.signed_tx" keeper-osaka)" = 0 ]
}
