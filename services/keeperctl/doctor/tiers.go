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
	shareByUnknown   = 0.01 // of all: a signer that is not listed does more, and who is helped out of a market less
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
	// Executions by nobody that is configured: a peer's signer that is not listed looks like that.
	{"tier-unlisted", "failover", true, sharing(func(f *Facts, _ tier.Config, found report) {
		if f.State == nil {
			return
		}
		all := 0.0
		for _, n := range f.State.Seen.Executed {
			all += n
		}
		if n := f.State.Seen.Executed[0]; n >= mostByUnknown && n > all*shareByUnknown {
			found(Warning, "", fmt.Sprintf("accounts that are no keeper's have executed %.0f jobs since the sender "+
				"started: they count for no tier, and no tier is relied upon for what they do", n),
				"keeperctl audit last 1h names them; list the peers' signers among them in tier.peers of every keeper")
		}
	})},
	{"tier-windows", "failover", true, sharing(outsideWindows)},
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
// stands in for a tier that is down acts before its own window: the sender counts no ages of these, and it is only
// looked at while the tier before it works.
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
