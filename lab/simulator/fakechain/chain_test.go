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
		w.Fund(s.Account, perp.Pow10(19))
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
		SizeDeltaUsd: perp.U64(1000).Mul(perp.One), InitialCollateralDeltaAmount: perp.U64(100).Mul(perp.Pow10(18)),
		AcceptablePrice: perp.Pow10(40),
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

// The life of a job: rehearsed, sent, mined, found in the logs, returned as an execution.
func TestOrderIsExecuted(t *testing.T) {
	w := newWorld(t)
	key := w.order()
	tx := w.execution(orderJob(key), 0)
	if _, err := w.Simulate(t.Context(), alice.Account, tx.To, tx.Data, tx.Gas, perp.Uint{}); err != nil {
		t.Fatal(err)
	}
	hash := w.mustSend(alice, tx)
	if r := w.receipt(hash); r != nil {
		t.Errorf("mined before any block: %+v", r)
	}
	w.blocks(1)
	r := w.receipt(hash)
	if r == nil || !r.OK || r.From != alice.Account || r.Nonce != 0 || r.BlockHash != w.head().Hash ||
		r.GasUsed != 2_420_000 || r.GasPrice != tx.Cap {
		t.Fatalf("receipt %+v", r)
	}
	o, err := gmx.NewDecoder(venue.EventEmitter).Outcome(r.Logs, key)
	if err != nil || o.Result != gmx.Executed {
		t.Errorf("outcome %+v, %v", o, err)
	}
	ended := w.Ended(w.head().Hash)
	if len(ended) != 1 || ended[0].Key != key || ended[0].Tx.From != alice.Account || ended[0].Block != w.head() {
		t.Errorf("ended: %+v", ended)
	}
	sent := w.Sent(w.head().Hash)
	if len(sent) != 1 || sent[0].Key != key || sent[0].Kind != job.Order || sent[0].Tx.Hash != hash {
		t.Errorf("sent: %+v", sent)
	}
	_, err = w.Simulate(t.Context(), bob.Account, tx.To, tx.Data, tx.Gas, perp.Uint{})
	data, reverted := evm.RevertData(err)
	if !reverted || gmx.DecodeRevert(data).Class != gmx.DoneElsewhere {
		t.Errorf("rehearsed once more: %v", err)
	}
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

// A mined transaction, the same or another one at its nonce, is too late.
func TestSpentNonce(t *testing.T) {
	w := newWorld(t)
	w.mustSend(alice, payment(0, txm.Gwei))
	w.blocks(1)
	for _, price := range []uint64{txm.Gwei, 2 * txm.Gwei} {
		if _, err := w.send(alice, payment(0, price)); evm.SendClass(err) != evm.ResolveByHash {
			t.Errorf("got %v", err)
		}
	}
}

func TestBytesThatAreNoTransaction(t *testing.T) {
	w := newWorld(t)
	if err := w.SendRaw(t.Context(), []byte{1, 2, 3}); err == nil {
		t.Error("they were taken")
	}
}

// Nonces are mined in their order, and what comes before its turn waits for it.
func TestGapsAreWaitedFor(t *testing.T) {
	w := newWorld(t)
	second := w.mustSend(alice, payment(1, 5*txm.Gwei))
	w.blocks(2)
	if w.receipt(second) != nil || w.nonce(alice, evm.Pending) != 0 {
		t.Fatal("mined before its turn")
	}
	first := w.mustSend(alice, payment(0, txm.Gwei))
	if n := w.nonce(alice, evm.Pending); n != 2 {
		t.Errorf("with what waits the next nonce is %d", n)
	}
	w.blocks(1)
	if w.receipt(first) == nil || w.receipt(second) == nil || w.nonce(alice, evm.Latest) != 2 {
		t.Error("not mined")
	}
	if n := w.nonce(alice, evm.Finalized); n != 0 {
		t.Errorf("the final nonce is %d", n)
	}
	w.blocks(2)
	if n := w.nonce(alice, evm.Finalized); n != 2 {
		t.Errorf("the final nonce is %d", n)
	}
}

// A transaction takes its time to the miners.
func TestGossip(t *testing.T) {
	w := newWorld(t, func(c *fakechain.Config) { c.Gossip, c.Jitter = 100*time.Millisecond, 0 })
	w.at = w.at.Add(blockTime - 99*time.Millisecond)
	hash := w.mustSend(alice, payment(0, txm.Gwei))
	w.at = w.at.Add(99 * time.Millisecond)
	if w.Mine(); w.receipt(hash) != nil {
		t.Error("mined before the miners had it")
	}
	w.blocks(1)
	if w.receipt(hash) == nil {
		t.Error("not mined")
	}
}

// The replacement is mined, and what it replaced is not.
func TestReplacementIsMined(t *testing.T) {
	w := newWorld(t)
	cheap, dear := w.mustSend(alice, payment(0, txm.Gwei)), w.mustSend(alice, payment(0, 2*txm.Gwei))
	w.blocks(2)
	if w.receipt(cheap) != nil || w.receipt(dear) == nil {
		t.Error("the wrong one was mined")
	}
}

// The best paid go first, within the block's gas.
func TestBlocksTakeTheBestPaid(t *testing.T) {
	w := newWorld(t, func(c *fakechain.Config) { c.GasLimit = 7_000_000 })
	key := w.order()
	loser, winner := w.execution(orderJob(key), 0), w.execution(orderJob(key), 0)
	winner.Tip, winner.Cap = 2*winner.Tip, 2*winner.Cap
	lost, won := w.mustSend(alice, loser), w.mustSend(bob, winner)
	w.blocks(1)
	if w.receipt(lost) != nil || w.receipt(won) == nil || !w.receipt(won).OK {
		t.Fatal("the cheaper one was mined first, or a block took more than its gas")
	}
	w.blocks(1)
	if r := w.receipt(lost); r == nil || r.OK || r.GasUsed != 573_000 {
		t.Errorf("the loser: %+v", r)
	}
}

func TestTips(t *testing.T) {
	w := newWorld(t)
	for n, price := range []uint64{1, 2, 3, 4} {
		w.mustSend(alice, payment(uint64(n), price*txm.Gwei))
	}
	w.blocks(3)
	tips, err := w.Tips(t.Context(), 20, []uint64{0, 25, 50, 90, 100})
	want := []uint64{1 * txm.Gwei, 1 * txm.Gwei, 2 * txm.Gwei, 4 * txm.Gwei, 4 * txm.Gwei}
	if err != nil || len(tips) != 1 {
		t.Fatalf("%v, %v: want those of one block", tips, err)
	}
	for i := range want {
		if tips[0][i] != want[i] {
			t.Errorf("tips %v, want %v", tips[0], want)
			break
		}
	}
}

// An account that has too little for a transaction that it could afford when it was sent waits until it is given more.
func TestMeansRunOut(t *testing.T) {
	w := newWorld(t)
	hash := w.mustSend(alice, payment(0, txm.Gwei))
	w.Fund(alice.Account, perp.U64(1))
	w.blocks(2)
	if w.receipt(hash) != nil {
		t.Fatal("mined without means")
	}
	if _, err := w.send(alice, payment(1, txm.Gwei)); evm.SendClass(err) != evm.PauseSigner {
		t.Errorf("got %v", err)
	}
	w.Fund(alice.Account, perp.Pow10(18))
	w.blocks(1)
	if w.receipt(hash) == nil {
		t.Error("not mined with means")
	}
	if left, err := w.Balance(t.Context(), alice.Account); err != nil || left != perp.Pow10(18).
		Sub(perp.U64(txm.EmptyGas*txm.Gwei)) {
		t.Errorf("%s left, %v", left, err)
	}
}
