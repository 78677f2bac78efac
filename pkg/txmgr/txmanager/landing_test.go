package txmanager

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// minedCount says how many of a signer's transactions are mined, by hand.
type minedCount struct {
	Node
	says  evm.MinedNonce
	err   error
	asked int
}

func (c *minedCount) MinedNonce(context.Context, chain.Address) (evm.MinedNonce, error) {
	c.asked++
	return c.says, c.err
}

// told notes what the store is told.
type told struct {
	txm.Store
	below []uint64
	err   error
}

func (s *told) MinedBelow(_ context.Context, _ lease.Fence, number uint64) error {
	if s.err == nil {
		s.below = append(s.below, number)
	}
	return s.err
}

// observed are limits that note what they are shown.
type observed struct {
	limits
	taken []txm.Taken
}

func (o *observed) Observe(t txm.Taken) { o.taken = append(o.taken, t) }

// LIQ-6: the store is told of each new number that two hosts have, also of a lower one after a reorg, and of none that
// one host says alone. What was not written is told again. The first look of a lease term frees slots too: what the
// drain found full before it may have been mined since.
func TestPlacesFollowWhatTwoHostsSay(t *testing.T) {
	node, store, seen, freed := &minedCount{}, &told{}, &observed{}, 0
	on := duty{term: newQueueTest(t, nil).term, node: node, store: store, heads: headsAt(nowMs, time.Now()),
		limits: seen}
	l := &landing{view: view{on, &broadcast{duty: on, last: map[chain.Hash]sent{}}}, freed: func() { freed++ }}
	away := errors.New("no connection")
	for _, c := range []struct {
		what  string
		says  evm.MinedNonce
		store error
		below []uint64
		freed int
	}{
		{"the first look of a lease term", evm.MinedNonce{Agreed: 5, Sure: true, Newest: 5}, nil, []uint64{5}, 1},
		{"nothing new", evm.MinedNonce{Agreed: 5, Sure: true, Newest: 7}, nil, []uint64{5}, 1},
		{"one host alone", evm.MinedNonce{Newest: 9}, nil, []uint64{5}, 1},
		{"three more", evm.MinedNonce{Agreed: 8, Sure: true, Newest: 9}, nil, []uint64{5, 8}, 2},
		{"a reorg", evm.MinedNonce{Agreed: 6, Sure: true, Newest: 8}, nil, []uint64{5, 8, 6}, 2},
		{"the store is away", evm.MinedNonce{Agreed: 8, Sure: true, Newest: 8}, away, []uint64{5, 8, 6}, 2},
		{"the store is back", evm.MinedNonce{Agreed: 8, Sure: true, Newest: 8}, nil, []uint64{5, 8, 6, 8}, 3},
	} {
		node.says, store.err = c.says, c.store
		newest, err := l.look(t.Context(), nil)
		if newest != c.says.Newest || !errors.Is(err, c.store) || !slices.Equal(store.below, c.below) ||
			freed != c.freed {
			t.Errorf("%s: newest %d, %v, the store was told %v, slots were freed %d times", c.what, newest, err,
				store.below, freed)
		}
	}
	node.err = away
	if _, err := l.look(t.Context(), nil); !errors.Is(err, away) {
		t.Errorf("nobody answers: %v", err)
	}
	var landed []uint64
	for _, s := range seen.taken {
		landed = append(landed, s.Landed)
	}
	if !slices.Equal(landed, []uint64{0, 0, 0, 3, 0, 2}) {
		t.Errorf("the limits have seen %v land", landed)
	}
}

// LIQ-14: what moves the limits is how long liquidations wait, since their first transaction, and whether nodes refuse.
// One that is another tier's waits for nothing, but for what only frees its nonce.
func TestHowLongLiquidationsWait(t *testing.T) {
	pending := func(kind job.Kind, n uint64, hashes ...byte) (f txm.PendingTx) {
		f.Intent.Job.Kind, f.Intent.Nonce = kind, n
		for _, h := range hashes {
			f.Txs = append(f.Txs, txm.Tx{Kind: txm.Exec, SignedTx: txm.SignedTx{Hash: chain.Hash{h}}})
		}
		return f
	}
	b := &broadcast{duty: duty{heads: headsAt(nowMs, time.Now()), turns: alone{}}, last: map[chain.Hash]sent{
		{1}: {first: 90}, {2}: {first: 97}, {3}: {first: 99}, {4}: {first: 80}, {5}: {},
	}}
	inFlight := []txm.PendingTx{
		pending(job.Order, 3, 1), pending(job.Liquidation, 4, 2, 3), pending(job.Liquidation, 2, 4),
		pending(job.Adl, 5, 5), pending(job.Liquidation, 6, 9),
	}
	if blocks, refused := b.waiting(inFlight, 3); blocks != 3 || refused {
		t.Errorf("%d blocks, refused %t; want the three of the raised one", blocks, refused)
	}
	b.last[chain.Hash{1}] = sent{class: evm.GapOrLimit}
	if _, refused := b.waiting(inFlight, 3); !refused {
		t.Error("a full pool is no refusal")
	}
	b.turns = lost{}
	if blocks, _ := b.waiting(inFlight, 3); blocks != 0 {
		t.Errorf("%d blocks, though all are another tier's", blocks)
	}
	inFlight[1].Txs[1].Kind = txm.Cancel
	if blocks, _ := b.waiting(inFlight, 3); blocks != 3 {
		t.Errorf("%d blocks; want the three of the one that frees its nonce", blocks)
	}
}
