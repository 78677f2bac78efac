package whynot

import (
	"encoding/binary"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Anybody may set a UI fee of his own, as often as he likes: what an order is judged by is the one that it names, and no
// other is held.
func TestUIFeesOfOthersAreNotHeld(t *testing.T) {
	const others = 500
	db, market := pgtest.DB(t), chain.Address{1}
	order := perp.Order{Key: chain.Hash{2}, Market: market, UIFeeReceiver: chain.Address{19: 1}, Status: perp.Created}
	rows := []perp.Row{order, perp.Market{MarketToken: market}}
	for i := range uint32(others) {
		account := chain.Address{}
		binary.BigEndian.PutUint32(account[16:], i+1)
		rows = append(rows, perp.Parameter{Key: perp.UIFeeKey(account), Value: chain.U64(uint64(i) + 10).Bytes32(),
			Source: perp.FromAccount})
	}
	pgtest.Hold(t, db, chain.BlockRef{Number: 1, Hash: chain.Hash{1}}, rows...)
	m, err := Present(t.Context(), db, price.NewBoard(), due.Rules{FireRatio: perp.One}, due.PriceMaxAge)
	if err != nil {
		t.Fatal(err)
	}
	fee := func(account chain.Address) chain.Uint {
		p, _ := m.Rows.Get(perp.RowKey{Table: perp.Parameters, Key: perp.UIFeeKey(account)}).(perp.Parameter)
		return p.Uint()
	}
	if m.Rows.Get(rows[1].RowKey()) == nil || !fee(order.UIFeeReceiver).IsZero() ||
		!fee(chain.Address{19: 2}).IsZero() {
		t.Error("the market is not held, or what accounts have set for themselves is")
	}
	if _, _, err := Decide(t.Context(), db, m, order.Key); err != nil {
		t.Fatal(err)
	}
	if got := fee(order.UIFeeReceiver); got != chain.U64(10) || !fee(chain.Address{19: 2}).IsZero() {
		t.Errorf("the order is judged with a fee of %s, want 10", got)
	}
}
