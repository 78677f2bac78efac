# scale: copies come and go under load; every group has as many members as there are copies, and the books agree afterwards.
leg_scale() {
	region_up || return
	check "scaled to statevm=4 planner=2 sender=2" keeper up -d --scale statevm=4 --scale planner=2 --scale sender=2
	within 120 "every copy is healthy" healthy
	shock WETH -20
	within 60 "every copy is in its group" grouped 2 2 4
	shock WETH 20
	goes_on "the copies execute"
	check "scaled back to one each" keeper up -d --scale statevm=1 --scale planner=1 --scale sender=1
	within 60 "the groups have one member each" grouped 1 1 1
	goes_on "one of each executes"
	books
}

grouped() { local m; m=$(members); echo "$m"; case $m in *planner=$1*sender=$2*statevm*=$3*) ;; *) return 1 ;; esac; }

# goes_on WHAT [SECONDS]: something that falls due from now on is executed.
goes_on() { local from; from=$(head_of) && within "${2:-90}" "$1" executes_after "$((from + 5))"; }
