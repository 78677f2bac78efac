package shadow

import (
	"cmp"
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// Rules are how trials are judged.
type Rules struct {
	// BeginMs and EndMs bound what is judged, by the blocks' times: executions within them, and jobs observed within
	// them.
	BeginMs, EndMs uint64
	// Grace is for how long (ms) before EndMs nothing is blamed yet: a real keeper may still execute what the shadow
	// would have sent, and the state may be behind.
	Grace uint64
}

// Score is the shadow's result, by kind of job.
type Score struct {
	Kind job.Kind
	// Before, Same and After count the executions by others that the shadow would have sent too: to an earlier block,
	// to the same, to a later one or only when it was done. Never counts those that its planner did not publish.
	Before, Same, After, Never int
	// Wrong counts the jobs that were not due: the simulated call reverted again and again while the planner held on to
	// them, or it went through and nobody executed them.
	Wrong int
	// WouldRevert counts the jobs whose simulated call reverted, once or oftener: held back, they cost nothing. Most
	// had just recovered.
	WouldRevert int
	// Overtaken counts the jobs that were withdrawn, or needed no more, before anybody had executed them.
	Overtaken int
	Open      int // not judged yet
	// Fees and Gas are what real keepers were paid, and burnt, for the executions counted in Before and Same, in wei:
	// what the shadow would have won.
	Fees, Gas chain.Uint
}

// Fault is one job that was wrongly due, or never found.
type Fault struct {
	What   string // wrong or never
	Kind   job.Kind
	Name   string // the job's id; of one that was never found the key
	Block  uint64
	Reason string
}

// Report is the whole judgement.
type Report struct {
	Scores []Score // by kind
	// Distances counts, by how many blocks the execution on the chain came after the block that the shadow's
	// transaction could have been in: below 0 the shadow was late.
	Distances map[int64]int
	Faults    []Fault
}

// Total sums the scores up.
func (r Report) Total() Score {
	total := Score{Kind: "total"}
	for _, s := range r.Scores {
		total.Before, total.Same, total.After = total.Before+s.Before, total.Same+s.Same, total.After+s.After
		total.Never, total.Wrong, total.WouldRevert = total.Never+s.Never, total.Wrong+s.Wrong,
			total.WouldRevert+s.WouldRevert
		total.Overtaken, total.Open = total.Overtaken+s.Overtaken, total.Open+s.Open
		total.Fees, total.Gas = total.Fees.Add(s.Fees), total.Gas.Add(s.Gas)
	}
	return total
}

// insistent is after how many reverts in a row, each of a new finding by the planner, a job was not due.
const insistent = 2

type judge struct {
	rules  Rules
	scores map[job.Kind]*Score
	fates  map[job.Need][]Fate // in the order of blocks
	trials map[job.Need][]Trial
	report Report
}

// Judge holds trials against fates. Deleveraging states (adlState) leave no trace that names them, and of a cancel no
// trace tells a keeper's from an owner's: they are not judged.
func Judge(rules Rules, trials []Trial, fates []Fate) Report {
	j := judge{rules: rules, scores: map[job.Kind]*Score{}, fates: map[job.Need][]Fate{},
		trials: map[job.Need][]Trial{}, report: Report{Distances: map[int64]int{}}}
	for _, f := range fates {
		j.fates[f.need()] = append(j.fates[f.need()], f)
	}
	for _, t := range trials {
		j.trials[t.need()] = append(j.trials[t.need()], t)
	}
	for _, of := range j.fates {
		slices.SortStableFunc(of, func(a, b Fate) int { return cmp.Compare(a.Block, b.Block) })
		for _, f := range of {
			j.fate(f)
		}
	}
	for _, of := range j.trials {
		for _, t := range of {
			if t.Kind != job.AdlState && t.Kind.Lane() != job.CleanupLane {
				j.trial(t)
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(j.scores)) {
		j.report.Scores = append(j.report.Scores, *j.scores[kind])
	}
	slices.SortFunc(j.report.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Name, b.Name))
	})
	return j.report
}

func (j *judge) of(kind job.Kind) *Score {
	if j.scores[kind] == nil {
		j.scores[kind] = &Score{Kind: kind}
	}
	return j.scores[kind]
}

// fate judges one execution by others: when would the shadow have sent it?
func (j *judge) fate(f Fate) {
	if f.ByOwner || f.TimeMs < j.rules.BeginMs || f.TimeMs+j.rules.Grace > j.rules.EndMs {
		return
	}
	s, found := j.of(f.Kind), j.trials[f.need()]
	if len(found) == 0 {
		s.Never++
		j.report.Faults = append(j.report.Faults, Fault{"never", f.Kind, f.Key.Hex(), f.Block,
			"executed by " + f.By.Hex() + ", and the planner said nothing of it"})
		return
	}
	sent, is := sentFor(found, f)
	if !is {
		s.After++
		return
	}
	distance := int64(f.Block) - int64(sent.SentBlock+1)
	j.report.Distances[distance]++
	switch {
	case distance > 0:
		s.Before++
	case distance == 0:
		s.Same++
	default:
		s.After++
		return
	}
	s.Fees, s.Gas = s.Fees.Add(f.Fee), s.Gas.Add(f.Gas)
}

// sentFor is the first of the trials that would have been sent for what an execution did: the newest finding before it
// that began after no other execution. What is found anew is another job, by its id.
func sentFor(found []Trial, f Fate) (first Trial, is bool) {
	newest := ""
	var at uint64
	for _, t := range found {
		if t.SentBlock > 0 && t.SentBlock <= f.Block && t.ObservedMs >= at {
			newest, at = t.JobID, t.ObservedMs
		}
	}
	for _, t := range found {
		if t.SentBlock > 0 && t.SentBlock <= f.Block && t.JobID == newest && (!is || t.SentBlock < first.SentBlock) {
			first, is = t, true
		}
	}
	return first, is
}

// trial judges one finding of the shadow: was there anything to be done?
func (j *judge) trial(t Trial) {
	if t.ObservedMs < j.rules.BeginMs || t.ObservedMs > j.rules.EndMs {
		return
	}
	s := j.of(t.Kind)
	if t.Reverts > 0 {
		s.WouldRevert++
	}
	end, ended := j.endOf(t)
	switch {
	case ended && !end.ByOwner: // counted with the executions
	case ended:
		s.Overtaken++
	case t.SentBlock == 0 && t.Reverts >= insistent:
		s.Wrong++
		j.report.Faults = append(j.report.Faults, Fault{"wrong", t.Kind, t.JobID, 0,
			"the simulated call reverted, found due again, and reverted again: " + t.Reason})
	case t.SentBlock == 0 && t.Outcome != "":
		s.Overtaken++
	case t.SentBlock == 0 || max(t.SentMs, t.ObservedMs)+j.rules.Grace > j.rules.EndMs:
		s.Open++
	case t.Kind == job.Adl: // others of the side were enough
		s.Overtaken++
	default:
		s.Wrong++
		j.report.Faults = append(j.report.Faults, Fault{"wrong", t.Kind, t.JobID, t.SentBlock,
			"the simulated call went through, and nobody has executed it"})
	}
}

// endOf is the first thing that the chain shows of a trial's need after the trial began.
func (j *judge) endOf(t Trial) (Fate, bool) {
	for _, f := range j.fates[t.need()] {
		if f.TimeMs+graceOfClocks >= min(t.ObservedMs, t.DueSinceMs) {
			return f, true
		}
	}
	return Fate{}, false
}

// graceOfClocks is by how much (ms) an execution may be older than the finding and still be its end: a due time is at
// the time of a report, which may be ahead of the block's.
const graceOfClocks = 2000
