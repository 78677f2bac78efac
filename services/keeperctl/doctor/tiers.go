package doctor

import (
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/tier"
)

// How many executions tell something of who executes, and when.
const (
	mostByUnknown    = 5
	enoughExecutions = 20
)

var tierChecks = []check{
	{"tier-off", "failover", false, func(f *Facts, found report) {
		if t := f.Settings.Tier; !t.Enabled && len(t.Peers) > 0 {
			found(Failure, "", "other keepers are named in tier.peers, and tier.enabled is false: this keeper sends "+
				"every job at once, and so do they", "set tier.enabled, or remove the peers")
		}
	}},
	{"tier-peers", "failover", false, sharing(func(f *Facts, t tier.Config, found report) {
		for n := 1; n <= t.Tiers; n++ {
			if (n != t.Priority || t.Monitor) &&
				!slices.ContainsFunc(t.Peers, func(p tier.Peer) bool { return p.Tier == n }) {
				found(Warning, fmt.Sprintf("tier %d", n), "nobody knows its signers: whether it executes cannot be "+
					"told, and its windows are never taken over early", "name its signers in tier.peers")
			}
		}
	})},
	{"tier-watched", "failover", false, sharing(func(f *Facts, t tier.Config, found report) {
		for _, p := range t.Peers {
			for _, s := range p.Signers {
				if !slices.Contains(f.Settings.Watched, s) {
					found(Warning, s.Hex(), fmt.Sprintf("the scanner does not record the transactions of this signer "+
						"of tier %d: those that revert are not seen", p.Tier),
						"list it in scanner.signers (PEER_SIGNERS of the env file)")
				}
			}
		}
	})},
	// By the policy delay, the Master waits for nobody and every backup longer than the tier before it.
	{"tier-delay", "failover", false, sharing(func(_ *Facts, t tier.Config, found report) {
		if t.Monitor || t.Policy != tier.PolicyDelay {
			return
		}
		want := time.Duration(t.Priority-1) * t.Window
		if t.ExecutionDelay < want || t.Priority == 1 && t.ExecutionDelay > 0 {
			found(Failure, "", fmt.Sprintf("tier %d waits for %s, and tiers are %s apart", t.Priority, t.ExecutionDelay,
				t.Window), fmt.Sprintf("set tier.execution_delay to %s", want))
		}
	})},
	// A job that leaves the queue before every tier had its turn is never the last one's.
	{"tier-age", "failover", false, sharing(func(_ *Facts, t tier.Config, found report) {
		if round := time.Duration(t.Tiers) * t.Window; t.JobMaxAge < round {
			found(Warning, "", fmt.Sprintf("jobs leave the queue after %s, and a round of %d tiers takes %s",
				t.JobMaxAge, t.Tiers, round), "raise tier.job_max_age")
		}
	})},
	// Executions by nobody that is configured: a peer's signer that is not listed looks like that.
	{"tier-strangers", "tiers", true, sharing(func(f *Facts, _ tier.Config, found report) {
		if f.State == nil {
			return
		}
		if n := f.State.Seen.Executed[0]; n >= mostByUnknown {
			found(Warning, "", fmt.Sprintf("accounts that are no keeper's have executed %.0f jobs since the sender "+
				"started: they count for no tier, and no tier is relied upon for what they do", n),
				"keeperctl audit last 1h names them; list the peers' signers among them in tier.peers of every keeper")
		}
	})},
	{"tier-windows", "tiers", true, sharing(outsideWindows)},
}

// sharing judges how jobs are shared with others, where they are.
func sharing(look func(*Facts, tier.Config, report)) func(*Facts, report) {
	return func(f *Facts, found report) {
		if f.Settings.Tier.Enabled {
			look(f, f.Settings.Tier, found)
		}
	}
}

// outsideWindows holds when tiers have executed against when their windows are by this keeper's settings. A backup that
// stands in for a tier that is down acts before its own window, so it is only looked at while the tier before it works.
func outsideWindows(f *Facts, t tier.Config, found report) {
	if f.State == nil || t.Policy != tier.PolicyWindows {
		return
	}
	seen := f.State.Seen
	for n := 1; n <= t.Tiers; n++ {
		ages := seen.Ages[n]
		if len(ages) == 0 || ages[len(ages)-1].Count < enoughExecutions {
			continue
		}
		all, begin := ages[len(ages)-1].Count, time.Duration(n-1)*t.Window
		early, late := below(ages, begin), all-below(ages, begin+t.Window)
		var how string
		switch {
		case n > 1 && early > all/2 && seen.Executed[n-1] > seen.Executed[n]:
			how = fmt.Sprintf("%.0f of its %.0f executions came before its window begins, at %s", early, all, begin)
		case n == 1 && late > all/2:
			how = fmt.Sprintf("%.0f of its %.0f executions came after its window, which ends at %s", late, all,
				t.Window)
		default:
			continue
		}
		found(Warning, fmt.Sprintf("tier %d", n), how,
			"compare tier.window, tier.tiers and tier.priority of the keepers, and whose signers tier.peers names for "+
				"it")
	}
}

// below is how many were executed at an age or below it, by the nearest bound that is not above it.
func below(ages []AgeCount, age time.Duration) (count float64) {
	for _, a := range ages {
		if a.Age <= age {
			count = a.Count
		}
	}
	return count
}
