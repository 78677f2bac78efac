package txmanager

import (
	"context"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// Work is what a manager's user does about the tasks of one signer. All of it may be called by several goroutines.
type Work struct {
	Pipeline Pipeline
	Judge    Judge
	// Idle is called when what was spent is counted: before a lease term's first task, when the queue is through, and
	// every two seconds.
	Idle func(ctx context.Context) error
	// Close is called when the signer is no longer worked.
	Close func()
}

// Pipeline decides about tasks.
type Pipeline interface {
	// Stages lead from a queued intent to its claim, for one lease term. They are run in their order.
	Stages(s TermState) []Stage
	// Read looks up together what the stages of some tasks need, as of now, and notes it with each of them
	// ([Task.Read]). It is called for all tasks of a batch at once, before the first stage of any.
	Read(ctx context.Context, tasks []*Task) error
	// Recheck looks at a task that has a nonce, before another transaction is made there. It sets the call. While it
	// says that nothing can be sent, a later lease term does not broadcast either what nobody is known to have
	// broadcast.
	Recheck(ctx context.Context, t *Task) (Verdict, error)
}

// TermState is the state of a lease term. Its functions are for the stages of that lease term.
type TermState struct {
	// Held is why the nodes would take nothing more of the signer, or empty.
	Held func() string
	// Reconciled reports whether the signer's nonces were compared with the chain in this lease term.
	Reconciled func() bool
}

// Judge finds what a mined transaction did to its job.
type Judge interface {
	// Outcome is how the job's attempt ends, and why. An error means that nobody could be asked.
	Outcome(ctx context.Context, j job.Job, r evm.Receipt) (job.Outcome, string, error)
	// Settlement is what a transaction that succeeded came to for a position's owner; nil where it did nothing to a
	// position.
	Settlement(j job.Job, r evm.Receipt) (*job.Settlement, error)
}

// Turns decides whose turn a job is where several keepers share the jobs, and takes what became of it.
type Turns interface {
	Ask(j job.Job) Turn
	// Taken is called with a job that was given a nonce.
	Taken(j job.Job)
	// Ended is called with an attempt that has ended.
	Ended(id string, o job.Outcome)
}

// Turn is whose turn a job is at one moment, for this keeper.
type Turn struct {
	// Mine is true when the job is this keeper's to press: to broadcast its transaction again, and to raise its price.
	Mine bool
	// Passed is true when another keeper's turn has begun. A turn that is neither mine nor passed is about to end: what
	// was sent may land, and nothing more is done for it.
	Passed bool
	// Verdict is what becomes of a task of the job that has no nonce. The zero verdict means that it may get one.
	Verdict Verdict
}

// Limits are what holds a signer back. They may change from one moment to the next: they are asked each time.
type Limits interface {
	// Fee is what may be paid.
	Fee() txm.Policy
	// InFlight is how many transactions may be under way. Those that are when it falls are seen through.
	InFlight() txm.Limits
	// Observe takes in what a block shows of what was sent.
	Observe(t txm.Taken)
}

// Publisher publishes attempts that have ended. After an error some may be published and some not; all are published
// of again.
type Publisher interface {
	Publish(ctx context.Context, ended []txm.Ended) error
}

// Node is what a manager asks of the chain.
type Node interface {
	Counter
	Endpoints
	settled
	// SendRaw and SendPrivate give a signed transaction to every endpoint, public or private; nil means that one has
	// it. Private ones that can bound when it is mined do so by untilMs (Unix ms, the chain's clock; 0 = they need
	// not).
	SendRaw(ctx context.Context, raw []byte) error
	SendPrivate(ctx context.Context, raw []byte, untilMs uint64) error
	Receipt(ctx context.Context, tx chain.Hash) (*evm.Receipt, error)
	Head(ctx context.Context) (chain.BlockRef, error)
	// GasPrice and Tips are what transactions are paid. No single endpoint may set it, where there are several.
	GasPrice(ctx context.Context) (uint64, error)
	Tips(ctx context.Context, blocks int, shares []uint64) ([][]uint64, error)
	Balance(ctx context.Context, account chain.Address) (chain.Uint, error) // in wei
	// Pays reports whether 1 wei that an account sends to itself finds room in a full block, as 0 wei does not.
	Pays(ctx context.Context, account chain.Address) (bool, error)
}

// Counter knows how many transactions an account has sent.
type Counter interface {
	NonceAt(ctx context.Context, account chain.Address, tag evm.Tag) (uint64, error)
}
