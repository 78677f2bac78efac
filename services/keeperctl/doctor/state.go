package doctor

import (
	"fmt"
	"time"
)

// What a state may be behind the chain, and partitions apart, while nothing is wrong.
const (
	stateIsOld = 20 * time.Second
	mostSkew   = 100 // blocks
)

var stateChecks = []check{
	{"postgres-reachable", "not-ready", true, func(f *Facts, found report) {
		if f.State != nil && f.State.Error != nil {
			found(Failure, "", "the database does not answer: "+f.State.Error.Error(),
				"see whether Postgres runs, and whether its address and the role's password are right")
		}
	}},
	{"state-schema", "rebuild", true, func(f *Facts, found report) {
		if f.State != nil && f.State.Error == nil && f.State.Schema != nil {
			found(Failure, "", f.State.Schema.Error(),
				"run keeperctl prepare; with an older build, go back to its image")
		}
	}},
	{"state-halted", "halted", true, ofState(func(_ *Facts, s *State, found report) {
		if s.Halted != "" {
			found(Failure, "", "the state is halted: "+s.Halted, "do what the runbook says, in its order")
		}
	})},
	{"state-started", "not-ready", true, ofState(func(_ *Facts, s *State, found report) {
		if !s.Started && s.Halted == "" {
			found(Failure, "", "no block has been applied by all partitions",
				"the first start reads the exchange's history: docker compose logs scanner says how far it is")
		}
	})},
	{"state-age", "alerts", true, ofState(func(f *Facts, s *State, found report) {
		if behind := span(s.TimeMs, f.clock()); s.Started && s.Halted == "" && behind > stateIsOld {
			found(Failure, "", fmt.Sprintf("the state is that of block %d, %s behind the chain: nothing is sent",
				s.Block, behind.Round(time.Second)),
				"see whether scanner and statevm are ready, and whether a partition has stopped")
		}
	})},
	{"state-skew", "halted", true, ofState(func(_ *Facts, s *State, found report) {
		if s.Skew > mostSkew && s.Halted == "" {
			found(Warning, "", fmt.Sprintf("partitions of the state are %d blocks apart", s.Skew),
				"one of them has stopped, or its statevm is slow: /readyz of statevm names it")
		}
	})},
	{"state-partitions", "topic-settings", true, ofState(func(f *Facts, s *State, found report) {
		if want := f.Settings.LogPartitions; s.Partitions != 0 && s.Partitions != want {
			found(Failure, "", fmt.Sprintf("the state was folded from %d partitions, and %d are configured",
				s.Partitions, want), "correct LOG_PARTITIONS; to raise it, go on as docs/runbooks/partitions.md says")
		}
	})},
	{"state-generation", "rebuild", true, ofState(func(_ *Facts, s *State, found report) {
		if len(s.Leftover) > 0 {
			found(Warning, "", fmt.Sprintf("generations %v are kept up to date beside the active one, and take its "+
				"time and disk", s.Leftover), "keeperctl generations switch, or drop them")
		}
	})},
	{"state-liquidations", "jobs", true, ofState(func(_ *Facts, s *State, found report) {
		if s.Failed > 0 {
			found(Failure, "", fmt.Sprintf("%d positions could not be liquidated", s.Failed),
				"keeperctl liquidations --failed says why")
		}
	})},
	{"state-delayed", "jobs", true, ofState(func(_ *Facts, s *State, found report) {
		if s.Parked > 0 {
			found(Warning, "", fmt.Sprintf("%d delayed jobs were given up", s.Parked),
				"keeperctl delayed list parked says why; delayed retry has one done again")
		}
	})},
	{"state-ready", "not-ready", true, func(f *Facts, found report) {
		if f.State == nil {
			return
		}
		for _, p := range f.State.Unready {
			found(Failure, p.Name, "it is not ready: "+p.Why, "the reason says what it waits for")
		}
	}},
}

// stateAnswers reports whether the database could be asked about its content.
func (f *Facts) stateAnswers() bool {
	return f.State != nil && f.State.Error == nil && f.State.Schema == nil
}

// ofState judges the state where its content is known.
func ofState(look func(*Facts, *State, report)) func(*Facts, report) {
	return func(f *Facts, found report) {
		if f.stateAnswers() {
			look(f, f.State, found)
		}
	}
}
