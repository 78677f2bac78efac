package fakechain_test

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/txm"
	"perpkeeper/test/sim/fakechain"
	"perpkeeper/test/sim/venue"
)

const blockTime = 450 * time.Millisecond

// world is a chain with a clock that the test moves, one market, and an endpoint.
type world struct {
	*fakechain.Chain
	*fakechain.Endpoint
	t     *testing.T
	at    time.Time
	venue *venue.Venue
	alice fakechain.Signer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, at: time.UnixMilli(1_700_000_000_000), venue: venue.New(1), alice: fakechain.Signer{Account: chain.Address{0xa1}}}
	w.Chain = fakechain.New(fakechain.DefaultConfig(), w.venue, func() time.Time { return w.at })
	w.Endpoint = w.Chain.Endpoint()
	w.Fund(w.alice.Account, perp.Pow10(19))
	w.blocks(1)
	return w
}

// blocks mines so many blocks.
func (w *world) blocks(n int) {
	for range n {
		w.at = w.at.Add(blockTime)
		w.Mine()
	}
}

// marketOrder is placed and mined.
func (w *world) marketOrder() chain.Hash {
	m := w.venue.Markets()[0]
	key, act := w.venue.Place(perp.Order{
		Account: chain.Address{0x77}, Market: m.MarketToken, InitialCollateralToken: venue.Dollar, OrderType: perp.MarketIncrease, IsLong: true,
		SizeDeltaUsd: perp.U64(1000).Mul(perp.One), InitialCollateralDeltaAmount: perp.U64(100).Mul(perp.Pow10(18)), AcceptablePrice: perp.Pow10(40),
	})
	w.Do(act)
	w.blocks(1)
	return key
}

// call executes an order with reports of now.
func (w *world) call(key chain.Hash) signer.Tx {
	w.t.Helper()
	m := w.venue.Markets()[0]
	var prices gmx.SetPrices
	for token, cents := range map[chain.Address]uint64{m.IndexToken: 60_000, venue.Dollar: 100} {
		r := venue.Report(token, venue.Price(cents), uint64(w.at.UnixMilli()))
		prices.Tokens, prices.Providers, prices.Data = append(prices.Tokens, r.Token), append(prices.Providers, r.Provider), append(prices.Data, r.Data)
	}
	to, data, err := venue.Contracts().Call(job.Job{Kind: job.Order, Key: key}, prices)
	if err != nil {
		w.t.Fatal(err)
	}
	return signer.Tx{ChainID: 56, To: to, Data: data, Gas: 6_000_000, Tip: txm.Gwei / 10, Cap: txm.Gwei / 10}
}

// send signs and sends.
func (w *world) send(by fakechain.Signer, tx signer.Tx) (chain.Hash, error) {
	w.t.Helper()
	raw, hash, err := by.Sign(w.t.Context(), tx)
	if err != nil {
		w.t.Fatal(err)
	}
	return hash, w.SendRaw(w.t.Context(), raw)
}

func TestOrderIsExecuted(t *testing.T) {
	w := newWorld(t)
	key := w.marketOrder()
	tx := w.call(key)
	if err := w.Simulate(t.Context(), w.alice.Account, tx.To, tx.Data, tx.Gas, perp.Uint{}); err != nil {
		t.Fatal(err)
	}
	hash, err := w.send(w.alice, tx)
	if err != nil {
		t.Fatal(err)
	}
	w.blocks(1)
	r, err := w.Receipt(t.Context(), hash)
	if err != nil || r == nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	o, err := gmx.NewDecoder(venue.Contracts().EventEmitter).Outcome(r.Logs, key)
	if err != nil || o.Result != gmx.Executed {
		t.Fatalf("%+v, %v", o, err)
	}
}
