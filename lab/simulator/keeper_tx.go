package simulator

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"perpkeeper/lab/simulator/fakechain"
	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

// contracts are the exchange's addresses, which are those of every play.
var contracts = venue.Contracts()

// txLog records the transactions that a keeper has signed and sent. Passes broadcast side by side, so that what was
// sent within one event is sorted before it goes into the transcript.
type txLog struct {
	mu     sync.Mutex
	signed map[chain.Hash]sentTx // not broadcast yet
	sent   []sentTx              // since the last event
}

// sentTx is a transaction and the job it is for.
type sentTx struct {
	hash  chain.Hash
	nonce uint64
	call  gmx.Call
	empty bool // a payment to oneself
}

// recordingSigner is a keeper's signer. It records what it signs.
type recordingSigner struct{ *keeper }

// Address implements signer.Signer.
func (p recordingSigner) Address() chain.Address { return p.key.Account }

// Sign implements signer.Signer.
func (p recordingSigner) Sign(ctx context.Context, tx signer.Tx) (raw []byte, hash chain.Hash, err error) {
	raw, hash, err = p.key.Sign(ctx, tx)
	l := sentTx{hash: hash, nonce: tx.Nonce, empty: len(tx.Data) == 0}
	l.call, _ = gmx.ReadCall(tx.Data)
	p.txs.mu.Lock()
	defer p.txs.mu.Unlock()
	p.txs.signed[hash] = l
	return raw, hash, err
}

// recordingNode is a keeper's node. It records each transaction that is broadcast for the first time, whatever becomes
// of it.
type recordingNode struct {
	*fakechain.Endpoint
	keeper *keeper
}

// SendRaw gives a transaction to the endpoint.
func (w recordingNode) SendRaw(ctx context.Context, raw []byte) error {
	hash := chain.Keccak256(raw)
	h := &w.keeper.txs
	h.mu.Lock()
	if l, news := h.signed[hash]; news {
		delete(h.signed, hash)
		h.sent = append(h.sent, l)
	}
	h.mu.Unlock()
	return w.Endpoint.SendRaw(ctx, raw)
}

// flush writes what was sent since the last event to the transcript.
func (k *keeper) flush() {
	k.txs.mu.Lock()
	sent := k.txs.sent
	k.txs.sent = nil
	k.txs.mu.Unlock()
	slices.SortFunc(sent, func(a, b sentTx) int {
		return cmp.Or(cmp.Compare(a.nonce, b.nonce), bytes.Compare(a.hash[:], b.hash[:]))
	})
	for _, l := range sent {
		if l.empty {
			k.sim.transcript.addf(k.sim, "%s frees nonce %d", tierName(k.tier), l.nonce)
			continue
		}
		n := k.sim.numberOf(l.call.Key)
		k.sim.records[n].sent[k.tier]++
		k.sim.transcript.addf(k.sim, "%s sends %s (nonce %d)", tierName(k.tier), k.sim.nameOf(n), l.nonce)
	}
	k.log.flush()
}

// recordResults takes the jobs that have ended, as the result topic does.
func (k *keeper) recordResults(ended []txm.Ended) error {
	for _, e := range ended {
		if e.Intent.Job.Kind == txm.Filler {
			continue
		}
		n := k.sim.numberOf(e.Intent.Job.Key)
		r := &k.sim.records[n]
		r.outcomes[k.tier] = append(r.outcomes[k.tier], e.Intent.Outcome)
		r.reported = r.reported || e.Intent.Outcome.Failure()
		k.sim.transcript.addf(k.sim, "%s: %s has ended: %s (%s)", tierName(k.tier), k.sim.nameOf(n),
			e.Intent.Outcome, e.Intent.Reason)
	}
	return nil
}
