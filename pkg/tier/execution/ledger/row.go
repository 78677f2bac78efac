package ledger

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier/execution"
)

// Row is the account of one job.
type Row struct {
	Kind   job.Kind   `json:"kind"`
	Key    chain.Hash `json:"key"`              // as in [job.Job]
	IsLong bool       `json:"isLong,omitempty"` // of a [job.AdlState]
	State  State      `json:"state"`
	// BornMs is the time (Unix ms) of the block that made the request; 0 where the chain does not say since when the
	// job was due.
	BornMs uint64 `json:"bornMs,omitempty"`
	// AgeMs is how old the job was when it was executed, by AgeBy.
	AgeMs  uint64           `json:"ageMs"`
	AgeBy  Clock            `json:"ageBy,omitempty"`
	Result execution.Result `json:"result,omitempty"`
	Reason string           `json:"reason,omitempty"` // of a cancellation or freezing
	Winner *Tx              `json:"winner,omitempty"`
	Losers []Loser          `json:"losers,omitempty"`
}

// State is a job's state when its account is closed.
type State string

// The states.
const (
	Done      State = "done"      // a keeper executed it, which may have cancelled or frozen the order
	Withdrawn State = "withdrawn" // its owner took it back, or it went with its position
	Waiting   State = "waiting"   // nobody has executed the request
	// Attempted: transactions were called for it in vain, and whether it was due at all the chain does not say.
	Attempted State = "attempted"
)

// Clock is what an age is counted from.
type Clock string

// The clocks.
const (
	ByRequest Clock = "request" // the block that made the request
	ByReports Clock = "reports" // the oldest price report of the execution: the job was at least so old
)

// Tx is a transaction and whose it was.
type Tx struct {
	Hash     chain.Hash    `json:"tx"`
	From     chain.Address `json:"from"`
	Tier     int           `json:"tier"` // 0 = of nobody in the roster
	Block    uint64        `json:"block"`
	TimeMs   uint64        `json:"timeMs"`
	Gas      uint64        `json:"gas"`      // 0 where another job of the same transaction pays
	GasPrice uint64        `json:"gasPrice"` // wei
}

// Loser is a transaction that was called for a job and did not end it.
type Loser struct {
	Tx
	Late     bool `json:"late"`     // the job was over already
	Reverted bool `json:"reverted"` // else it succeeded and did nothing
}

// Late counts the losers that came when the job was over: the duplicates.
func (r Row) Late() (n int) {
	for _, l := range r.Losers {
		if l.Late {
			n++
		}
	}
	return n
}
