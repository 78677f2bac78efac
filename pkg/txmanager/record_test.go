package txmanager

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

// minedAt is a node on which everything is mined in block 5.
type minedAt struct {
	minedCount
	final uint64
}

var itsBlock = chain.Hash{5}

func (n *minedAt) Receipt(_ context.Context, tx chain.Hash) (*evm.Receipt, error) {
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
	return itsBlock, true, nil
}

// written is a store that notes what is written of a flight.
type written struct {
	inFlight
	steps    []string
	recorded txm.Receipt
}

func (s *written) Record(_ context.Context, _ lease.Fence, r txm.Receipt) error {
	s.steps, s.recorded = append(s.steps, "record"), r
	return nil
}

func (s *written) Finish(_ context.Context, _ lease.Fence, r txm.Receipt, _ txm.Rest) error {
	if s.steps = append(s.steps, "finish"); !r.Same(s.recorded) || r.Outcome != s.recorded.Outcome {
		s.steps = append(s.steps, "another receipt")
	}
	return nil
}

// done says of every transaction that it has done its job.
type done struct{}

func (done) Outcome(context.Context, job.Job, evm.Receipt) (job.Outcome, string, error) {
	return job.Done, "", nil
}
func (done) Settlement(job.Job, evm.Receipt) (*job.Settlement, error) { return nil, nil } //nolint:nilnil // none

// A receipt whose block is final is recorded and finished in one pass; one whose block is not is recorded alone.
func TestFinalReceiptsAreFinishedAtOnce(t *testing.T) {
	tenure := newQueueTest(t, nil).tenure
	for final, want := range map[uint64][]string{4: {"record"}, 5: {"record", "finish"}, 9: {"record", "finish"}} {
		node, store := &minedAt{final: final}, &written{}
		node.says = evm.MinedNonce{Agreed: 1, Sure: true, Newest: 1}
		store.flights = []txm.Flight{{Attempts: []txm.Attempt{{SignedTx: txm.SignedTx{Hash: chain.Hash{1}}}}}}
		b := &broadcast{last: map[chain.Hash]sent{}, heads: headsAt(nowMs, time.Now())}
		v := view{node: node, broadcast: b}
		c := &confirm{
			tenure: tenure, store: store, view: v, turns: alone{}, broadcast: b, limits: limits{}, judge: done{},
			waiting: new(waiting), ages: newAges(time.Now, time.Hour), ended: func() {},
			rest:    func(txm.Intent, job.Outcome) txm.Rest { return txm.Rest{} },
			metrics: NewMetrics(prometheus.NewRegistry()), log: zerolog.Nop(),
		}
		c.landing = &landing{view: v, tenure: tenure, store: store, limits: limits{}, freed: func() {}}
		if err := c.pass(t.Context()); err != nil || !slices.Equal(store.steps, want) {
			t.Errorf("block 5, final is %d: %v, want %v; %v", final, store.steps, want, err)
		}
	}
}
