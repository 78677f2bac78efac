package fakechain_test

import (
	"testing"
	"time"

	"perpkeeper/lab/simulator/fakechain"
	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

const (
	blockTime = 450 * time.Millisecond
	cents     = 60_000 // the index price
)

// world is a chain with a clock that the test moves, one market, and an endpoint.
type world struct {
	*fakechain.Chain
	*fakechain.Endpoint
	t     testing.TB
	at    time.Time
	venue *venue.Venue
}

var (
	alice = fakechain.Signer{Account: chain.Address{0xa1}}
	bob   = fakechain.Signer{Account: chain.Address{0xb0}}
)

func newWorld(t testing.TB, change ...func(*fakechain.Config)) *world {
	t.Helper()
	cfg := fakechain.DefaultConfig()
	for _, c := range change {
		c(&cfg)
	}
	w := &world{t: t, at: time.UnixMilli(1_700_000_000_000), venue: venue.New(1)}
	w.Chain = fakechain.New(cfg, w.venue, func() time.Time { return w.at })
	w.Endpoint = w.Chain.Endpoint()
	for _, s := range []fakechain.Signer{alice, bob} {
		w.Fund(s.Account, chain.Pow10(19))
	}
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

// place has a trader place a market order, which the next block takes.
func (w *world) place() chain.Hash {
	m := w.venue.Markets()[0]
	key, act := w.venue.Place(perp.Order{
		Account: chain.Address{0x77}, Market: m.MarketToken, InitialCollateralToken: venue.Dollar,
		OrderType: perp.MarketIncrease, IsLong: true,
		SizeDeltaUsd: chain.U64(1000).Mul(perp.One), InitialCollateralDeltaAmount: chain.U64(100).Mul(chain.Pow10(18)),
		AcceptablePrice: chain.Pow10(40),
	})
	w.Do(act)
	return key
}

// order is place, and the block.
func (w *world) order() chain.Hash {
	key := w.place()
	w.blocks(1)
	return key
}

// execution is the call that executes a job with reports of now.
func (w *world) execution(j job.Job, nonce uint64) signer.Tx {
	w.t.Helper()
	m := w.venue.Markets()[0]
	var prices gmx.SetPrices
	add := func(token chain.Address, cents uint64) {
		r := venue.Report(token, venue.Price(cents), uint64(w.at.UnixMilli()))
		prices.Tokens, prices.Providers, prices.Data = append(prices.Tokens, r.Token),
			append(prices.Providers, r.Provider), append(prices.Data, r.Data)
	}
	add(m.IndexToken, cents)
	add(venue.Dollar, 100)
	to, data, err := venue.Contracts().Call(j, prices)
	if err != nil {
		w.t.Fatal(err)
	}
	return signer.Tx{ChainID: 56, Nonce: nonce, To: to, Data: data, Gas: 6_000_000, Tip: txm.Gwei / 10,
		Cap: txm.Gwei / 10}
}

func orderJob(key chain.Hash) job.Job { return job.Job{Kind: job.Order, Key: key} }

// payment is a payment to oneself.
func payment(nonce, price uint64) signer.Tx {
	return signer.Tx{ChainID: 56, Nonce: nonce, Gas: txm.EmptyGas, Tip: price, Cap: price}
}

// send signs and gives to an endpoint.
func (w *world) send(by fakechain.Signer, tx signer.Tx) (chain.Hash, error) {
	w.t.Helper()
	raw, hash, err := by.Sign(w.t.Context(), tx)
	if err != nil {
		w.t.Fatal(err)
	}
	return hash, w.SendRaw(w.t.Context(), raw)
}

func (w *world) mustSend(by fakechain.Signer, tx signer.Tx) chain.Hash {
	w.t.Helper()
	hash, err := w.send(by, tx)
	if err != nil {
		w.t.Fatal(err)
	}
	return hash
}

func (w *world) receipt(hash chain.Hash) *evm.Receipt {
	w.t.Helper()
	r, err := w.Receipt(w.t.Context(), hash)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) nonce(by fakechain.Signer, tag evm.Tag) uint64 {
	w.t.Helper()
	n, err := w.NonceAt(w.t.Context(), by.Account, tag)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) head() chain.BlockRef {
	w.t.Helper()
	head, err := w.Head(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return head
}

// What nodes answer, in words that pkg/evm sorts.
func TestNodesAnswers(t *testing.T) {
	type send struct {
		tx   signer.Tx
		want evm.Class
	}
	const gwei = txm.Gwei
	changed := func(tx signer.Tx, change func(*signer.Tx)) signer.Tx {
		change(&tx)
		return tx
	}
	for name, sends := range map[string][]send{
		"taken":             {{payment(0, gwei), evm.Accepted}},
		"taken before":      {{payment(0, gwei), evm.Accepted}, {payment(0, gwei), evm.Accepted}},
		"ahead of its turn": {{payment(5, gwei), evm.Accepted}},
		"too far ahead":     {{payment(64, gwei), evm.GapOrLimit}},
		"another at the same price": {{payment(0, gwei), evm.Accepted},
			{changed(payment(0, gwei), func(tx *signer.Tx) { tx.Gas++ }), evm.OtherTxAtNonce}},
		"a raise by 9 %": {{payment(0, 100*gwei), evm.Accepted}, {payment(0, 109*gwei), evm.OtherTxAtNonce}},
		"a raise by 10 %": {{payment(0, 100*gwei), evm.Accepted}, {payment(0, 110*gwei), evm.Accepted},
			{payment(0, 111*gwei), evm.OtherTxAtNonce}},
		"a raise of the cap alone": {
			{payment(0, gwei), evm.Accepted}, {changed(payment(0, gwei), func(tx *signer.Tx) { tx.Cap *= 2 }),
				evm.OtherTxAtNonce},
		},
		"a raise of the tip alone": {
			{changed(payment(0, gwei), func(tx *signer.Tx) { tx.Cap *= 4 }), evm.Accepted},
			{changed(payment(0, 2*gwei), func(tx *signer.Tx) { tx.Cap *= 2 }), evm.OtherTxAtNonce},
		},
		"too cheap": {{payment(0, gwei/20-1), evm.BumpToMin}},
		"more than there is": {{changed(payment(0, gwei), func(tx *signer.Tx) { tx.Gas, tx.Cap = maxGas, 1e12 }),
			evm.PauseSigner}},
		"too much gas": {{changed(payment(0, gwei), func(tx *signer.Tx) { tx.Gas = maxGas + 1 }),
			evm.FatalPayload}},
		"too little gas": {{changed(payment(0, gwei), func(tx *signer.Tx) { tx.Gas-- }), evm.FatalPayload}},
		"data without its gas": {{changed(payment(0, gwei), func(tx *signer.Tx) { tx.Data = []byte{1} }),
			evm.FatalPayload}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for n, s := range sends {
				if _, err := w.send(alice, s.tx); evm.SendClass(err) != s.want {
					t.Errorf("answer %d: %v (%s), want %s", n, err, evm.SendClass(err), s.want)
				}
			}
		})
	}
}

const maxGas = 16_777_216
