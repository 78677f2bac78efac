package simulator

import (
	"time"

	"perpkeeper/pkg/job"
)

// Play is one run of a scenario: what became of every job.
type Play struct {
	Seed   uint64
	Jobs   []JobResult
	Alerts []Alert
	// Broken are the promises that were broken, whatever the scenario expects: a job was executed twice on the branch
	// that stayed, or before it was due.
	Broken []string
	// Transcript is the play line by line, if it was asked for.
	Transcript []string
	// Length is for how long it was played, and Events how many events it took.
	Length time.Duration
	Events int
}

// JobResult is what became of one job.
type JobResult struct {
	Name   string   // as in the transcript
	Kind   job.Kind // limit orders are a kind of their own
	Poison bool
	// Born is since when the job could be executed, from the beginning of the play.
	Born time.Duration
	// Executor is the tier whose transaction did it, 0 if nobody's did, and Age how old the job was in the block that
	// holds it.
	Executor int
	Age      time.Duration
	// Gas is what the execution took. Losers are the mined transactions that found nothing to do, of any tier, and
	// LostGas is what they took. Reverts are those that failed for another reason.
	Gas, LostGas    uint64
	Losers, Reverts int
	// Sent counts by tier (from 1) the broadcast transactions that were to do the job, each once.
	Sent []int
	// Outcomes are by tier (from 1) how the arms ended, in their order.
	Outcomes [][]job.Outcome
	// Reported says that some keeper reported the job as expired or given up.
	Reported bool
}

// Done reports whether the job was executed.
func (f JobResult) Done() bool { return f.Executor != 0 }

// Alert is a warning, or worse, that a keeper logged.
type Alert struct {
	At     time.Duration
	Keeper int
	Text   string
}
