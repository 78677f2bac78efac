// Package doctor compares what is known of a keeper with what it needs, and gives for each fault what was seen, how to
// mend it and which runbook has more.
//
// It is pure: [Facts] are gathered by others, [Examine] judges them. Each check is one entry in the table of its area.
// A fact that could not be had is nil, and is no fault of what depends on it: that nobody could be asked is a fault of
// its own. Guaranteed: the same facts give the same findings, in the same order. Not guaranteed: that a keeper without
// findings earns anything; nothing here sends a transaction.
package doctor

import (
	"cmp"
	"slices"
)

// Severity is how soon somebody has to act.
type Severity string

// The severities. A warning is a fault that costs nothing yet.
const (
	Failure Severity = "failure" // jobs are not executed, or money is at stake, until it is mended
	Warning Severity = "warning" // the keeper works, with less to fall back on, or not for long
)

// Area groups checks.
type Area string

// The areas, in the order they are shown in: what everything depends on comes first.
const (
	AreaEndpoints Area = "endpoints"
	AreaVenue     Area = "venue"
	AreaSigners   Area = "signers"
	AreaPrices    Area = "prices"
	AreaTiers     Area = "tiers"
	AreaTopics    Area = "topics"
	AreaState     Area = "state"
	AreaMachine   Area = "machine"
)

// Finding is one fault.
type Finding struct {
	Check    string   `json:"check"`
	Area     Area     `json:"area"`
	Severity Severity `json:"severity"`
	About    string   `json:"about,omitempty"` // the endpoint, signer, token, … at fault; empty where there is but one
	Seen     string   `json:"seen"`
	Fix      string   `json:"fix"`
	Runbook  string   `json:"runbook"` // a path in the repository
}

// report takes down a fault: about is as in [Finding].
type report func(how Severity, about, seen, fix string)

// check looks for one kind of fault.
type check struct {
	name    string
	runbook string
	late    bool // it is about what runs, and not asked before anything does
	look    func(f *Facts, found report)
}

// groups are the checks of each area.
var groups = []struct {
	area   Area
	checks []check
}{
	{AreaEndpoints, endpointChecks}, {AreaVenue, venueChecks}, {AreaSigners, signerChecks}, {AreaPrices, priceChecks},
	{AreaTiers, tierChecks}, {AreaTopics, topicChecks}, {AreaState, stateChecks}, {AreaMachine, machineChecks},
}

// warnIf is a warning where something still serves, and a failure where nothing does.
func warnIf(serves bool) Severity {
	if serves {
		return Warning
	}
	return Failure
}

// Summary is the result of an area.
type Summary struct {
	Area     Area `json:"area"`
	Checks   int  `json:"checks"` // how many were made
	Findings int  `json:"findings"`
}

// Examine makes every check. Findings come by area, failures first.
func Examine(f *Facts) (found []Finding, areas []Summary) {
	for _, g := range groups {
		s := Summary{Area: g.area}
		first := len(found)
		for _, c := range g.checks {
			if c.late && f.Pre {
				continue
			}
			s.Checks++
			c.look(f, func(how Severity, about, seen, fix string) {
				found = append(found, Finding{c.name, g.area, how, about, seen, fix,
					"docs/runbooks/" + c.runbook + ".md"})
			})
		}
		s.Findings = len(found) - first
		slices.SortStableFunc(found[first:],
			func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) }) // failure < warning
		areas = append(areas, s)
	}
	return found, areas
}
