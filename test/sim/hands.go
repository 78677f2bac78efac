package sim

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/txm"
	"perpkeeper/test/sim/fakechain"
	"perpkeeper/test/sim/venue"
)

// contracts are the exchange's addresses, which are those of every play.
var contracts = venue.Contracts()

// hands are what a keeper has signed and sent, noted beside its work. Passes broadcast side by side, so that what was
// sent within one event is put in order before it is told.
type hands struct {
	mu     sync.Mutex
	signed map[chain.Hash]letter // not broadcast yet
	sent   []letter              // since the last event
}

// letter is a transaction and what it is for.
type letter struct {
	hash  chain.Hash
	nonce uint64
	call  gmx.Call
	empty bool // a payment to oneself
}

// pen is a keeper's signer. It remembers what it signs.
type pen struct{ *keeper }

// Address implements signer.Signer.
func (p pen) Address() chain.Address { return p.key.Account }

// Sign implements signer.Signer.
func (p pen) Sign(ctx context.Context, tx signer.Tx) (raw []byte, hash chain.Hash, err error) {
	raw, hash, err = p.key.Sign(ctx, tx)
	l := letter{hash: hash, nonce: tx.Nonce, empty: len(tx.Data) == 0}
	l.call, _ = gmx.ReadCall(tx.Data)
	p.hands.mu.Lock()
	defer p.hands.mu.Unlock()
	p.hands.signed[hash] = l
	return raw, hash, err
}

// wire is a keeper's node. It notes what is broadcast for the first time, whatever becomes of it.
type wire struct {
	*fakechain.Endpoint
	keeper *keeper
}

// SendRaw gives a transaction to the endpoint.
func (w wire) SendRaw(ctx context.Context, raw []byte) error {
	hash := chain.Keccak256(raw)
	h := &w.keeper.hands
	h.mu.Lock()
	if l, news := h.signed[hash]; news {
		delete(h.signed, hash)
		h.sent = append(h.sent, l)
	}
	h.mu.Unlock()
	return w.Endpoint.SendRaw(ctx, raw)
}

// flush tells what was sent since the last event.
func (k *keeper) flush() {
	k.hands.mu.Lock()
	sent := k.hands.sent
	k.hands.sent = nil
	k.hands.mu.Unlock()
	slices.SortFunc(sent, func(a, b letter) int {
		return cmp.Or(cmp.Compare(a.nonce, b.nonce), bytes.Compare(a.hash[:], b.hash[:]))
	})
	for _, l := range sent {
		if l.empty {
			k.stage.transcript.sayf(k.stage, "%s frees nonce %d", tierName(k.tier), l.nonce)
			continue
		}
		n := k.stage.numberOf(l.call.Key)
		k.stage.records[n].sent[k.tier]++
		k.stage.transcript.sayf(k.stage, "%s sends %s (nonce %d)", tierName(k.tier), k.stage.nameOf(n), l.nonce)
	}
	k.ear.flush()
}

// tell takes what has ended, as the result topic does.
func (k *keeper) tell(ended []txm.Ended) error {
	if k.has(KafkaDown) {
		return errKafka
	}
	for _, e := range ended {
		if e.Intent.Job.Kind == txm.Filler {
			continue
		}
		n := k.stage.numberOf(e.Intent.Job.Key)
		r := &k.stage.records[n]
		r.outcomes[k.tier] = append(r.outcomes[k.tier], e.Intent.Outcome)
		r.told = r.told || e.Intent.Outcome.Failure()
		k.stage.transcript.sayf(k.stage, "%s: %s has ended: %s (%s)", tierName(k.tier), k.stage.nameOf(n),
			e.Intent.Outcome, e.Intent.Reason)
	}
	return nil
}
