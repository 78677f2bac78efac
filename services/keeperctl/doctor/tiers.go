package doctor

import (
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/tier"
)

func tierChecks() []check {
	return []check{
		{"tier-off", "failover", false, sharingOff},
		{"tier-peers", "failover", false, tiersUnknown},
		{"tier-watched", "failover", false, peersUnwatched},
		{"tier-delay", "failover", false, wrongDelay},
		{"tier-age", "failover", false, forgetsTooSoon},
		{"tier-strangers", "tiers", true, strangers},
		{"tier-windows", "tiers", true, outsideWindows},
	}
}

func sharingOff(f *Facts) []fault {
	if t := f.Settings.Tier; t.Enabled || len(t.Peers) == 0 {
		return nil
	}
	return []fault{{Failure, "", "other keepers are named in tier.peers, and tier.enabled is false: this keeper " +
		"sends every job at once, and so do they", "set tier.enabled, or remove the peers"}}
}

func tiersUnknown(f *Facts) (found []fault) {
	t := f.Settings.Tier
	if !t.Enabled {
		return nil
	}
	for n := 1; n <= t.Tiers; n++ {
		if n == t.Priority && !t.Monitor ||
			slices.ContainsFunc(t.Peers, func(p tier.Peer) bool { return p.Tier == n }) {
			continue
		}
		found = append(found, fault{Warning, fmt.Sprintf("tier %d", n),
			"nobody knows its signers: whether it executes cannot be told, and its " +
				"windows are never taken over early", "name its signers in tier.peers"})
	}
	return found
}

func peersUnwatched(f *Facts) (found []fault) {
	if !f.Settings.Tier.Enabled {
		return nil
	}
	for _, p := range f.Settings.Tier.Peers {
		for _, s := range p.Signers {
			if !slices.Contains(f.Settings.Watched, s) {
				found = append(found, fault{Warning, s.Hex(),
					fmt.Sprintf("the scanner does not record the transactions of "+
						"this signer of tier %d: those that revert are not seen", p.Tier),
					"list it in scanner.signers (PEER_SIGNERS of the env file)"})
			}
		}
	}
	return found
}

// wrongDelay: by the policy delay, the Master waits for nobody and every backup longer than the tier before it.
func wrongDelay(f *Facts) []fault {
	t := f.Settings.Tier
	if !t.Enabled || t.Monitor || t.Policy != tier.PolicyDelay {
		return nil
	}
	if want := time.Duration(t.Priority-1) * t.Window; t.ExecutionDelay < want || t.Priority == 1 &&
		t.ExecutionDelay > 0 {
		return []fault{{Failure, "", fmt.Sprintf("tier %d waits for %s, and tiers are %s apart", t.Priority,
			t.ExecutionDelay, t.Window), fmt.Sprintf("set tier.execution_delay to %s", want)}}
	}
	return nil
}

// forgetsTooSoon: a job that leaves the queue before every tier had its turn is never the last one's.
func forgetsTooSoon(f *Facts) []fault {
	t := f.Settings.Tier
	if round := time.Duration(t.Tiers) * t.Window; t.Enabled && t.JobMaxAge < round {
		return []fault{{Warning, "", fmt.Sprintf("jobs leave the queue after %s, and a round of %d tiers takes %s",
			t.JobMaxAge, t.Tiers, round), "raise tier.job_max_age"}}
	}
	return nil
}

// How many executions tell something of who executes, and when.
const (
	mostByStrangers  = 5
	enoughExecutions = 20
)

// strangers finds executions by nobody that is configured: a peer's signer that is not listed looks like that.
func strangers(f *Facts) []fault {
	if f.State == nil || !f.Settings.Tier.Enabled {
		return nil
	}
	if n := f.State.Seen.Executed[0]; n >= mostByStrangers {
		return []fault{{Warning, "",
			fmt.Sprintf("accounts that are no keeper's have executed %.0f jobs since the sender "+
				"started: they count for no tier, and no tier is relied upon for what they do", n),
			"keeperctl audit last 1h names them; list the peers' signers among them in tier.peers of every keeper"}}
	}
	return nil
}

// outsideWindows holds when tiers have executed against when their windows are by this keeper's settings. A backup that
// stands in for a tier that is down acts before its own window, so it is only looked at while the tier before it works.
func outsideWindows(f *Facts) (found []fault) {
	t := f.Settings.Tier
	if f.State == nil || !t.Enabled || t.Policy != tier.PolicyWindows {
		return nil
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
		found = append(found, fault{Warning, fmt.Sprintf("tier %d", n), how,
			"compare tier.window, tier.tiers and tier.priority of the keepers, and whose signers tier.peers names " +
				"for it"})
	}
	return found
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
