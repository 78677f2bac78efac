package preflight

import (
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txmanager"
)

// recentlyFoundMs is for how long (ms, of chain time) a job that is sent too early is asked about again after the
// planner last published it: longer than it takes from one sweep to the next.
const recentlyFoundMs = uint64(3 * job.SaidEvery / 2 / time.Millisecond)

// premature decides about a job that the venue would not do yet, or not well. While the planner goes on saying it, it
// waits and is asked about again each second, however long that takes: no attempt ends for it, and none fails. When it
// is not published any more its condition is gone.
//
// One is a liquidation of a position that the venue calls healthy by little: its account may have a referral discount,
// which no event shows, so that we find it due a little before the venue does. Dropped, it would not be looked at
// before the next sweep, when it may long be due. Another is an order that the venue would freeze for a cause that the
// state does not show; and one that is valid from the second of a report on, which the chain has not reached yet.
func premature(j job.Job, v txmanager.Verdict, headMs uint64) txmanager.Verdict {
	switch {
	case !v.Premature:
		return v
	case headMs <= j.Evidence.Block.TimeMs+recentlyFoundMs:
		return txmanager.Verdict{Kind: txmanager.Defer, Reason: "not yet: " + v.Reason, Pause: time.Second}
	}
	return txmanager.End(job.DroppedRecovered, v.Reason)
}

// isNearly reports, of a position that the venue calls healthy, whether what remains of it is at most a tenth above
// what must: no discount on a position fee makes more of a difference.
func isNearly(r gmx.Revert) bool {
	remaining, known := r.Int("remainingCollateralUsd")
	least, _ := r.Int("minCollateralUsd")
	forLeverage, _ := r.Int("minCollateralUsdForLeverage")
	if least.Less(forLeverage) {
		least = forLeverage
	}
	return known && remaining.Sign() > 0 && least.Sign() > 0 && !least.Uint().DivUp(chain.U64(10)).Int().
		Less(remaining.Sub(least))
}
