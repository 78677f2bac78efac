# Sourced by run.sh: how a check is made and told. One line for each, "OK" or "FAIL", on standard output; `leg` names the leg at work.
checks=0
deadline=10800 # seconds after which a run waits for nothing any more
failed=()

ok() { checks=$((checks + 1)); printf 'OK    %-11s %s\n' "$leg" "$*"; }
fail() { checks=$((checks + 1)); failed+=("$leg: $*"); printf 'FAIL  %-11s %s\n' "$leg" "$*"; }
note() { printf '      %-11s %s\n' "$leg" "$*"; }

# check WHAT COMMAND…: passes if the command does, and says how long that took; what it prints is kept, and its last line is told if it fails.
check() {
	local what=$1 out=$run/check.log began=$SECONDS; shift
	if "$@" >"$out" 2>&1; then ok "$what ($((SECONDS - began)) s)"; else fail "$what: $(grep . "$out" | tail -n 1 | cut -c1-300)"; return 1; fi
}

# patience: by how much limits are stretched while this machine has more to do than it can: the load of each processor beyond 2, fivefold at most.
patience() {
	awk -v n="$(getconf _NPROCESSORS_ONLN)" '{f = $1 / n / 2; print int(10 * (f < 1 ? 1 : f > 5 ? 5 : f))}' /proc/loadavg # tenths
}

# within SECONDS WHAT COMMAND…: asks again every second until the command passes, and says how long that took.
within() {
	local limit=$(($1 * $(patience) / 10)) what=$2 began=$SECONDS; shift 2
	until "$@" >"$run/check.log" 2>&1; do
		if [ $((SECONDS - began)) -ge "$limit" ] || [ $SECONDS -ge "$deadline" ]; then
			fail "$what: not after $((SECONDS - began)) s: $(tail -n 1 "$run/check.log" | cut -c1-200)"
			return 1
		fi
		sleep 1
	done
	ok "$what ($((SECONDS - began)) s)"
}

# equal WHAT WANT HAVE
equal() { if [ "$2" = "$3" ]; then ok "$1"; else fail "$1: \"$3\", not \"$2\""; return 1; fi; }
