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

func stateChecks() []check {
	return []check{
		{"postgres-reachable", "not-ready", true, noDatabase},
		{"state-schema", "rebuild", true, otherSchema},
		{"state-halted", "halted", true, halted},
		{"state-started", "not-ready", true, notStarted},
		{"state-age", "behind", true, oldState},
		{"state-skew", "partition-stopped", true, partitionsApart},
		{"state-partitions", "topic-settings", true, otherPartitions},
		{"state-generation", "rebuild", true, leftovers},
		{"state-liquidations", "liquidations", true, failedLiquidations},
		{"state-delayed", "delayed-jobs", true, parked},
		{"state-ready", "not-ready", true, unready},
	}
}

// stateAnswers tells whether the database could be asked about its content.
func (f *Facts) stateAnswers() bool {
	return f.State != nil && f.State.Error == nil && f.State.Schema == nil
}

// ofState is one fault of the state, or none.
func (f *Facts) ofState(wrong func(*State) bool, how Severity, seen func(*State) string, fix string) []fault {
	if !f.stateAnswers() || !wrong(f.State) {
		return nil
	}
	return []fault{{how, "", seen(f.State), fix}}
}

func noDatabase(f *Facts) []fault {
	if f.State == nil || f.State.Error == nil {
		return nil
	}
	return []fault{{Failure, "", "the database does not answer: " + f.State.Error.Error(),
		"see whether Postgres runs, and whether its address and the role's password are right"}}
}

func otherSchema(f *Facts) []fault {
	if f.State == nil || f.State.Error != nil || f.State.Schema == nil {
		return nil
	}
	return []fault{{Failure, "", f.State.Schema.Error(), "run keeperctl prepare; with an older build, go back to " +
		"its image"}}
}

func halted(f *Facts) []fault {
	return f.ofState(func(s *State) bool { return s.Halted != "" }, Failure,
		func(s *State) string { return "the state is halted: " + s.Halted }, "do what the runbook says, in its order")
}

func notStarted(f *Facts) []fault {
	return f.ofState(func(s *State) bool { return !s.Started && s.Halted == "" }, Failure,
		func(*State) string { return "no block has been applied by all partitions" },
		"the first start reads the exchange's history: docker compose logs scanner says how far it is")
}

func oldState(f *Facts) []fault {
	behind := func(s *State) time.Duration { return span(s.TimeMs, f.clock()) }
	return f.ofState(func(s *State) bool { return s.Started && s.Halted == "" && behind(s) > stateIsOld }, Failure,
		func(s *State) string {
			return fmt.Sprintf("the state is that of block %d, %s behind the chain: nothing is sent", s.Block,
				behind(s).Round(time.Second))
		}, "see whether scanner and statevm are ready, and whether a partition has stopped")
}

func partitionsApart(f *Facts) []fault {
	return f.ofState(func(s *State) bool { return s.Skew > mostSkew && s.Halted == "" }, Warning,
		func(s *State) string { return fmt.Sprintf("partitions of the state are %d blocks apart", s.Skew) },
		"one of them has stopped, or its statevm is slow: /readyz of statevm names it")
}

func otherPartitions(f *Facts) []fault {
	want := f.Settings.LogPartitions
	return f.ofState(func(s *State) bool { return s.Partitions != 0 && s.Partitions != want }, Failure,
		func(s *State) string {
			return fmt.Sprintf("the state was folded from %d partitions, and %d are configured", s.Partitions, want)
		}, "correct LOG_PARTITIONS")
}

func leftovers(f *Facts) []fault {
	return f.ofState(func(s *State) bool { return len(s.Leftover) > 0 }, Warning,
		func(s *State) string {
			return fmt.Sprintf("generations %v are kept up to date beside the active one, and take its time and "+
				"disk", s.Leftover)
		}, "keeperctl generations switch, or drop them")
}

func failedLiquidations(f *Facts) []fault {
	return f.ofState(func(s *State) bool { return s.Failed > 0 }, Failure,
		func(s *State) string { return fmt.Sprintf("%d positions could not be liquidated", s.Failed) },
		"keeperctl liquidations --failed says why")
}

func parked(f *Facts) []fault {
	return f.ofState(func(s *State) bool { return s.Parked > 0 }, Warning,
		func(s *State) string { return fmt.Sprintf("%d delayed jobs were given up", s.Parked) },
		"keeperctl delayed list parked says why; delayed retry has one done again")
}

func unready(f *Facts) (found []fault) {
	if f.State == nil {
		return nil
	}
	for _, p := range f.State.Unready {
		found = append(found, fault{Failure, p.Name, "it is not ready: " + p.Why, "the reason says what it waits for"})
	}
	return found
}
