package txmanager

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txm"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const nowMs = 1_700_000_000_000

// headsAt knows block 100, of a time, that has come at another.
func headsAt(ms uint64, arrived time.Time) *headtrack.Tracker {
	h := headtrack.New(time.Now)
	h.Set(chain.BlockRef{Number: 100, Hash: chain.Hash{1}, TimeMs: ms}, arrived)
	return h
}

// alone has every turn.
type alone struct{}

func (alone) Ask(job.Job) Turn          { return Turn{Mine: true} }
func (alone) Taken(job.Job)             {}
func (alone) Ended(string, job.Outcome) {}

// limits are those by default.
type limits struct{}

func (limits) Fee() txm.Policy      { return txm.DefaultPolicy() }
func (limits) InFlight() txm.Limits { return txm.Limits{Signer: 16, Liquidations: 10} }
func (limits) Observe(txm.Taken)    {}

// odd is the verdict after an answer that says nothing of a job.
func odd(reason string) Verdict { return Verdict{Kind: Retry, Reason: reason, Heads: 1} }
