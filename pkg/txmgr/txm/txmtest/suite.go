// Package txmtest is the test suite that every store of intents must pass, together with the leases that fence it and
// the nonces it gives out.
//
// The letters S1 to S13 are ways in which a fence can fail; docs/requirements.md lists them.
package txmtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/txm"
)

// Stores are those of one keeper.
type Stores struct {
	Leases  lease.Store
	Nonces  nonce.Store
	Intents txm.Store
	// Register makes a signer known.
	Register func(ctx context.Context, signer chain.Address) error
}

// Setup returns the stores of a keeper that has done nothing yet.
type Setup func(t *testing.T) Stores

// Run puts stores through the suite. Tests run in parallel.
func Run(t *testing.T, setup Setup) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&bench{T: t, Stores: setup(t)})
		})
	}
}

var tests = map[string]func(*bench){
	"a claim stores number and bytes together":                     claimStores,
	"S1: a former owner inserts nothing new":                       staleClaim,
	"S2: a taken number is not taken again":                        takenNumber,
	"S3: one lease term, one cursor":                               oneCursor,
	"S4: a consumed number stays consumed":                         consumedStays,
	"S5, S6: a former owner changes no row":                        staleWrites,
	"S7, S12: a later lease term of the same owner is another one": ownPast,
	"S13: time frees no number":                                    nothingByTime,
	"a lost answer is looked up":                                   lookUp,
	"a job is one job however often it is said":                    oneJob,
	"a crowd of senders stores one attempt":                        busyQueue,
	"the next attempt waits for the last one":                      nextAttempt,
	"what failed is tried again once":                              triedAgain,
	"newer words reach a queued attempt":                           refresh,
	"the queue is in the order of jobs":                            order,
	"one liquidation per account":                                  oneLiquidationPerAccount,
	"one transaction per order":                                    oneTransactionPerOrder,
	"one deleveraging of a side":                                   oneDeleveragingOfASide,
	"so many liquidations per keeper":                              liquidationLimit,
	"so many pending transactions per signer":                      pendingLimit,
	"what is mined by agreement frees its slot":                    minedFreesSlots,
	"a reorg takes slots again":                                    reorgTakesSlots,
	"slots are kept for liquidations":                              reservedSlots,
	"signers share the keeper's slots":                             sharedSlots,
	"a signer that is out keeps no slots":                          outKeepsNoSlots,
	"receipts come, go and stay":                                   receipts,
	"receipts are stored all or none":                              batchOfReceipts,
	"a state is reached from its predecessors only":                guards,
	"a foreign transaction pauses the signer":                      foreign,
	"a paused signer claims nothing":                               paused,
	"nobody looks for what would be refused":                       fullHouse,
	"a batch is claimed whole or not at all":                       batches,
	"a raise is stored before it is broadcast":                     replaced,
	"one raise of several is stored":                               raceToReplace,
	"a job that is given up stays given up":                        cancelled,
	"a gap is filled once":                                         filled,
	"what is spent is known":                                       spent,
	"failures in a row are counted":                                tries,
	"what ended is reported":                                       reports,
	"a claim that waits for a refreshed intent is whole":           claimRacesRefresh,
	"no number and no job twice under pauses and lost replies":     hammer,
}

const (
	long  = time.Minute
	short = 500 * time.Millisecond
)

// settled is the rest after what was done; the chain's clock of the suite stands at now.
var settled = txm.Rest{RetryAfterMs: now + 10_000}

// now is the chain's time (ms) at which the suite's jobs are found.
const now = 1_700_000_000_000

var limits = txm.Limits{Signer: 16, Liquidations: 10}

// bench is what one test works with.
type bench struct {
	*testing.T
	Stores
	count atomic.Uint32
}

// signer registers a fresh one.
func (b *bench) signer() chain.Address {
	b.Helper()
	s := chain.Address{0xaa, byte(b.count.Add(1))}
	if err := b.Register(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	return s
}

// node is one sender process with a lease term of a signer.
type node struct {
	*bench
	owner  lease.Owner
	fence  lease.Fence
	cursor nonce.Cursor
}

// node acquires a signer's lease and opens its account.
func (b *bench) node(signer chain.Address) *node {
	b.Helper()
	n := &node{bench: b, owner: lease.NewOwner("node")}
	n.begin(signer)
	return n
}

// sender is a node with a signer of its own.
func (b *bench) sender() (*node, chain.Address) {
	b.Helper()
	signer := b.signer()
	return b.node(signer), signer
}

func (n *node) begin(signer chain.Address) {
	n.Helper()
	var err error
	if n.fence, err = n.Leases.Acquire(n.Context(), signer, n.owner, long); err != nil {
		n.Fatal(err)
	}
	if n.cursor, err = n.Nonces.TakeOver(n.Context(), n.fence, 0); err != nil {
		n.Fatal(err)
	}
}

// expire ends the lease term as time does, sooner.
func (n *node) expire() {
	n.Helper()
	if _, err := n.Leases.Acquire(n.Context(), n.fence.Signer, n.owner, short); err != nil {
		n.Fatal(err)
	}
	<-time.After(2 * short)
}

// succeed makes another process the owner.
func (n *node) succeed() *node {
	n.Helper()
	if err := n.Leases.Release(n.Context(), n.fence); err != nil {
		n.Fatal(err)
	}
	return n.node(n.fence.Signer)
}

// order returns a job that executes an order of an account.
func anOrder(signer chain.Address, key byte) job.Job {
	k := chain.Hash{key}
	return job.Job{
		ID: job.OrderID(k, 1), Kind: job.Order, Key: k, Account: chain.Address{key}, Class: job.ClassMarketOrder,
		DueSinceMs: 1_700_000_000_000,
		Tokens:     []chain.Address{{1}, {2}}, Signer: signer,
		Evidence: job.Evidence{Block: chain.BlockRef{TimeMs: now},
			Reports: []string{"a"}, Reason: "due"},
	}
}

// found is a job as a planner finds it so many milliseconds later, by the chain's clock.
func found(j job.Job, laterMs uint64) job.Job {
	j.Evidence.Block.TimeMs = now + laterMs
	return j
}

// aLiquidation returns a job that liquidates one of an account's positions.
func aLiquidation(signer chain.Address, account, position byte) job.Job {
	k := chain.Hash{account, position, 0xff} // no order has this key
	return job.Job{
		ID: job.LiquidationID(k, 1), Kind: job.Liquidation, Key: k, Account: chain.Address{account},
		Class: job.ClassLiquidation,
		Ratio: chain.Pow10(29), Signer: signer, Evidence: job.Evidence{Block: chain.BlockRef{TimeMs: now}},
	}
}

// queue stores jobs and returns their intents.
func (b *bench) queue(jobs ...job.Job) []*txm.Intent {
	b.Helper()
	intents := make([]*txm.Intent, 0, len(jobs))
	for _, j := range jobs {
		if a, err := b.Intents.Enqueue(b.Context(), j); err != nil || a != txm.NewAttempt {
			b.Fatalf("%s: %s, %v", j.ID, a, err)
		}
		intents = append(intents, b.find(j))
	}
	return intents
}

// find looks for the intent of a job in its signer's queue.
func (b *bench) find(j job.Job) *txm.Intent {
	b.Helper()
	for _, i := range b.heads(j.Signer) {
		if i.Job.ID == j.ID {
			return &i
		}
	}
	b.Fatalf("%s is not queued", j.ID)
	return nil
}

// heads is a signer's whole queue.
func (b *bench) heads(signer chain.Address) []txm.Intent {
	b.Helper()
	heads, err := b.Intents.Heads(b.Context(), signer, txm.Pick{Limit: 1000})
	if err != nil {
		b.Fatal(err)
	}
	return heads
}

// sign makes the transaction of an intent at a number. Its bytes say which.
func sign(intent int64, signer chain.Address, n uint64) txm.SignedTx {
	raw := fmt.Appendf(nil, "intent %d of %s at %d", intent, signer, n)
	return txm.SignedTx{Nonce: n, Gas: 21_000, Tip: 70, Cap: 90, Hash: sha256.Sum256(raw), Raw: raw}
}

// one is a batch of one.
func one(intent *txm.Intent, tx txm.SignedTx, cursor uint64) txm.Batch {
	return txm.Batch{Claims: []txm.Claim{{Intent: intent.ID, Kind: intent.Job.Kind, Tx: tx}}, Cursor: cursor,
		Limits: limits}
}

// claim signs with the promised number and claims. The cursor moves if the claim succeeds.
func (n *node) claim(intent *txm.Intent) (txm.SignedTx, error) {
	n.Helper()
	tx := sign(intent.ID, n.fence.Signer, n.cursor.Promise())
	err := n.Intents.Claim(n.Context(), n.fence, one(intent, tx, n.cursor.Next))
	if err == nil {
		n.cursor = n.cursor.Taken(tx.Nonce)
	}
	return tx, err
}

func (n *node) mustClaim(intent *txm.Intent) txm.SignedTx {
	n.Helper()
	tx, err := n.claim(intent)
	if err != nil {
		n.Fatal(err)
	}
	return tx
}

// inFlight lists what is in flight.
func (b *bench) inFlight(signer chain.Address) []txm.PendingTx {
	b.Helper()
	inFlight, err := b.Intents.InFlight(b.Context(), signer)
	if err != nil {
		b.Fatal(err)
	}
	return inFlight
}

// ended demands how many ended attempts have not been published, and returns them.
func (b *bench) ended(signer chain.Address, want int) []txm.Ended {
	b.Helper()
	ended, err := b.Intents.Unreported(b.Context(), signer, want+1)
	if err != nil || len(ended) != want {
		b.Fatalf("to be told: %+v, %v; want %d", ended, err, want)
	}
	return ended
}

// depth demands how many intents are queued.
func (b *bench) depth(signer chain.Address, want int) {
	b.Helper()
	if depth, err := b.Intents.Depth(b.Context(), signer); err != nil || depth != want {
		b.Errorf("%d queued, %v; want %d", depth, err, want)
	}
}

// onlyPending demands that one intent is in flight, in a state.
func (b *bench) onlyPending(signer chain.Address, want txm.State) txm.PendingTx {
	b.Helper()
	inFlight := b.inFlight(signer)
	if len(inFlight) != 1 || inFlight[0].Intent.State != want {
		b.Fatalf("in flight: %+v, want one that is %s", inFlight, want)
	}
	return inFlight[0]
}

// settlement is what the receipts of this suite came to, with a text as contracts may give it.
func settlement() *job.Settlement {
	return &job.Settlement{
		OrderKey: chain.Hash{9}, SizeDeltaUsd: chain.Pow10(34), PnlUsd: chain.I64(-5), Insolvent: true,
		BadDebtUsd: chain.U64(3), BadDebtStep: "a \x00, a \xff and a \\",
		Fees:     job.Fees{Liquidation: chain.U64(2), Total: chain.U64(4)},
		Returned: []job.Payment{{Token: chain.Address{8}, Amount: chain.U64(6)}},
	}
}

// minedAt is the receipt of a transaction in a block of a branch.
func minedAt(tx txm.SignedTx, block uint64, branch byte) txm.Receipt {
	return txm.Receipt{
		TxHash: tx.Hash, Block: chain.BlockRef{Number: block, Hash: chain.Hash{byte(block), branch, 1}}, OK: true,
		GasUsed: 20_000, GasPrice: 7,
		Outcome: job.Done, Reason: "logs", Settlement: settlement(),
	}
}

// land records and finishes a transaction.
func (n *node) land(tx txm.SignedTx) {
	n.Helper()
	r := minedAt(tx, 5, 0)
	n.must(n.Intents.Record(n.Context(), n.fence, r))
	n.must(n.Intents.Finish(n.Context(), n.fence, txm.FinalReceipt{Receipt: r, Rest: settled}))
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// none demands that there is nothing of a kind.
func none[T any](b *bench, what string, some []T) {
	b.Helper()
	if len(some) != 0 {
		b.Errorf("%s: %+v", what, some)
	}
}

func (b *bench) mustBeLost(what string, err error) {
	b.Helper()
	if !lease.Lost(err) {
		b.Errorf("%s: got %v, want to be fenced out", what, err)
	}
}

func (b *bench) mustBeRefused(what string, err error, why txm.Refusal) {
	b.Helper()
	if txm.Refused(err) != why {
		b.Errorf("%s: got %v, want %q", what, err, why)
	}
}
