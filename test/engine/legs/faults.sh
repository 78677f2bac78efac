# faults: every process is killed from outside, as a machine out of memory would, or restarted; all is well again without anybody's help.
leg_faults() {
	region_up || return
	local service
	for service in scanner statevm planner sender postgres kafka; do fault kill $service; done
	for service in scanner statevm planner sender postgres kafka; do fault restart $service; done
	books
}

# kill: one fault of each kind, for the short form.
leg_kill() {
	region_up || return
	fault kill sender
	fault kill kafka
	books
}

fault() {
	local what="$1 $2" container=$name-$2-1 since
	since=$(docker inspect -f '{{.State.StartedAt}}' "$container")
	case $1 in
	kill) kill -9 "$(docker inspect -f '{{.State.Pid}}' "$container")" ;;
	restart) docker restart "$container" >/dev/null ;;
	esac
	within 60 "$what: it runs anew" started_after "$container" "$since"
	goes_on "$what: executes again" 150
	within 150 "$what: all are healthy" healthy
}

started_after() { [ "$(docker inspect -f '{{.State.Running}} {{.State.StartedAt}}' "$1")" != "true $2" ] && [ "$(docker inspect -f '{{.State.Running}}' "$1")" = true ]; }
