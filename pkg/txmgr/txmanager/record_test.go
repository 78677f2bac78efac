package txmanager

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// minedAt is a node on which everything is mined in block 5. It answers when so many have asked for a receipt.
type minedAt struct {
	minedCount
	final uint64

	disputed bool // two endpoints have the receipts in another block

	asked  atomic.Int32
	answer int32
	enough chan struct{}
}

var itsBlock = chain.Hash{5}

func (n *minedAt) Receipt(ctx context.Context, tx chain.Hash) (*evm.Receipt, error) {
	if n.asked.Add(1) == n.answer {
		close(n.enough)
	}
	if n.answer > 0 {
		select {
		case <-n.enough:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &evm.Receipt{Tx: chain.Tx{Hash: tx, Block: 5, BlockHash: itsBlock, OK: true}}, nil
}
func (n *minedAt) Finalized(context.Context) (chain.BlockRef, error) {
	return chain.BlockRef{Number: n.final}, nil
}
func (n *minedAt) Head(context.Context) (chain.BlockRef, error) {
	return chain.BlockRef{Number: 10}, nil
}
func (n *minedAt) SettledHash(context.Context, uint64) (chain.Hash, error) { return itsBlock, nil }
func (n *minedAt) SettledReceipt(context.Context, chain.Hash) (chain.Hash, bool, error) {
	if n.disputed {
		return chain.Hash{6}, true, nil
	}
	return itsBlock, true, nil
}

// written is a store that notes what is written of pending transactions.
type written struct {
	pendingStore
	moved    chain.Hash // a transaction whose intent has moved on
	lost     bool       // the lease is another process's
	steps    []string
	recorded []txm.Receipt
	finished []chain.Hash
}

func (s *written) Record(_ context.Context, _ lease.Fence, receipts ...txm.Receipt) error {
	s.steps = append(s.steps, "record")
	if s.lost {
		return &lease.LostError{Op: "record"}
	}
	if slices.ContainsFunc(receipts, func(r txm.Receipt) bool { return r.TxHash == s.moved }) {
		return &txm.RefusedError{Op: "record", Why: txm.Moved}
	}
	s.recorded = append(s.recorded, receipts...)
	return nil
}

func (s *written) Finish(_ context.Context, _ lease.Fence, finals ...txm.FinalReceipt) error {
	s.steps = append(s.steps, "finish")
	for _, f := range finals {
		s.finished = append(s.finished, f.TxHash)
		stored := func(r txm.Receipt) bool { return r.Same(f.Receipt) && r.Outcome == f.Outcome }
		if !slices.ContainsFunc(s.recorded, stored) {
			s.steps = append(s.steps, "another receipt")
		}
	}
	return nil
}

// done says of every transaction that it has done its job.
type done struct{}

func (done) Outcome(context.Context, job.Job, evm.Receipt) (job.Outcome, string, error) {
	return job.Done, "", nil
}
func (done) Settlement(job.Job, evm.Receipt) (*job.Settlement, error) { return nil, nil } //nolint:nilnil // none

// confirming is a confirm of so many pending transactions that all are mined on a node.
func confirming(t *testing.T, node *minedAt, store *written, inFlight int) *confirm {
	t.Helper()
	on := newQueueTest(t, nil).duty
	on.node, on.store, on.heads = node, store, headsAt(nowMs, time.Now())
	node.says = evm.MinedNonce{Agreed: uint64(inFlight), Sure: true, Newest: uint64(inFlight)}
	node.enough = make(chan struct{})
	for n := range inFlight {
		f := txm.PendingTx{Txs: []txm.Tx{{SignedTx: txm.SignedTx{Hash: chain.Hash{byte(n) + 1}}}}}
		f.Intent = txm.Intent{ID: int64(n) + 1, Nonce: uint64(n)}
		store.inFlight = append(store.inFlight, f)
	}
	v := view{duty: on, broadcast: &broadcast{duty: on, last: map[chain.Hash]sent{}}}
	return &confirm{
		view: v, landing: &landing{view: v, freed: func() {}}, judge: done{}, waiting: new(waiting),
		ages: newAges(time.Now, time.Hour), ended: func() {}, renewal: renewal{signing: signing{market: marketAt(0)}},
		rest: func(txm.Intent, job.Outcome) txm.Rest { return txm.Rest{} },
	}
}

// A receipt whose block is final is recorded and finished in one pass; one whose block is not is recorded alone.
func TestFinalReceiptsAreFinishedAtOnce(t *testing.T) {
	for final, want := range map[uint64][]string{4: {"record"}, 5: {"record", "finish"}, 9: {"record", "finish"}} {
		store := &written{}
		c := confirming(t, &minedAt{final: final}, store, 1)
		if err := c.pass(t.Context()); err != nil || !slices.Equal(store.steps, want) {
			t.Errorf("block 5, final is %d: %v, want %v; %v", final, store.steps, want, err)
		}
	}
}

// NON-16: a block that took one of ours shows that its price is enough, but not by what only freed a nonce: there is
// room for that where an execution has none, and a lane of its own.
func TestWhatFreesANonceShowsNoPrice(t *testing.T) {
	for kind, want := range map[txm.TxKind]uint64{txm.Exec: 5, txm.Cancel: 0, txm.Fill: 0} {
		c := confirming(t, &minedAt{final: 4}, &written{}, 1)
		signed := txm.SignedTx{Hash: chain.Hash{1}, Cap: txm.Gwei}
		pending := txm.PendingTx{Txs: []txm.Tx{{Kind: kind, SignedTx: signed}}}
		pending.Intent = txm.Intent{ID: 1}
		c.store.(*written).inFlight = []txm.PendingTx{pending}
		if err := c.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := c.renewal.market.enough(job.LiquidationLane, txm.Gwei); got != want {
			t.Errorf("%s: block %d shows that its price is enough, want %d", kind, got, want)
		}
	}
}

// A crash day's receipts are asked for side by side, and stored in one statement.
func TestReceiptsAreStoredTogether(t *testing.T) {
	store := &written{}
	c := confirming(t, &minedAt{final: 9, answer: sideBySide}, store, 40)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a node that is asked one by one
	defer cancel()
	if err := c.pass(ctx); err != nil || !slices.Equal(store.steps, []string{"record", "finish"}) ||
		len(store.finished) != 40 {
		t.Errorf("%v, and %d are finished; %v", store.steps, len(store.finished), err)
	}
}

// That a final block holds a transaction is what two endpoints say, and not the one that gave its receipt.
func TestDisputedReceiptsEndNothing(t *testing.T) {
	store := &written{}
	c := confirming(t, &minedAt{final: 9, disputed: true}, store, 2)
	if err := c.pass(t.Context()); err == nil || len(store.recorded) != 2 || len(store.finished) != 0 {
		t.Errorf("%d are recorded, %d are finished; %v", len(store.recorded), len(store.finished), err)
	}
}

// One that has moved on keeps no other from being stored.
func TestWhatHasMovedOnIsLeftOut(t *testing.T) {
	store := &written{moved: chain.Hash{2}}
	c := confirming(t, &minedAt{final: 9}, store, 3)
	err := c.pass(t.Context())
	if want := []chain.Hash{{1}, {3}}; err != nil || !slices.Equal(store.finished, want) {
		t.Errorf("%v are finished, want %v; %v", store.finished, want, err)
	}
}

// A pass ends where the store says that the lease term is over: nothing is written or sent after that.
func TestNothingIsDoneAfterTheTerm(t *testing.T) {
	store := &written{lost: true}
	c := confirming(t, &minedAt{final: 9}, store, looksAtOnce+1)
	if err := c.pass(t.Context()); !lease.Lost(err) || !slices.Equal(store.steps, []string{"record"}) {
		t.Errorf("%v; %v", store.steps, err)
	}
}
