package planner

import (
	"encoding/binary"
	"errors"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Anybody sets the UI fee of his own account: a planner holds those that its orders name, however many there are.
func TestUIFeesOfOthersAreNotHeld(t *testing.T) {
	s := newSharded(t)
	own := func(account chain.Address, fee uint64) perp.Parameter {
		return perp.Parameter{Key: perp.UIFeeKey(account), Value: chain.U64(fee).Bytes32(), Source: perp.FromAccount}
	}
	s.state.fees = map[chain.Hash]perp.Parameter{}
	set := func(account chain.Address, fee uint64) { s.state.fees[perp.UIFeeKey(account)] = own(account, fee) }
	const others = 5000
	for i := range uint32(others) {
		account := chain.Address{19: 1}
		binary.BigEndian.PutUint32(account[:], i)
		set(account, 1)
	}
	wallet, site, unset := chain.Address{19: 2}, chain.Address{19: 3}, chain.Address{19: 4}
	set(wallet, 10)
	set(site, 20)
	naming := func(key byte, receiver chain.Address) perp.Order {
		o := order(perp.LimitSwap, 0)
		o.Key, o.SwapPath, o.UIFeeReceiver = chain.Hash{key}, []chain.Address{ethMarket.MarketToken}, receiver
		return o
	}
	fees := func(what string, want map[chain.Address]uint64) {
		t.Helper()
		if held := len(s.book.rows); held > 10 {
			t.Errorf("%s: %d rows are held beside %d fees of others", what, held, others)
		}
		for account, fee := range want {
			p, _ := s.book.rows.Get(uiFee(perp.UIFeeKey(account))).(perp.Parameter)
			if p.Uint() != chain.U64(fee) {
				t.Errorf("%s: the fee of %s is %s, want %d", what, account, p.Uint(), fee)
			}
		}
	}
	next := func() {
		t.Helper()
		s.state.rev++
		s.must(s.reload(t.Context()))
	}

	s.state.rows[0] = append(s.state.rows[0], naming(1, wallet))
	s.state.rows[1] = append(s.state.rows[1], naming(2, wallet))
	s.assign(0)
	s.must(s.load())
	fees("a load", map[chain.Address]uint64{wallet: 10, site: 0})
	s.assign(0, 1)
	s.must(s.load())
	fees("another partition beside it", map[chain.Address]uint64{wallet: 10, site: 0})

	set(wallet, 11)
	s.state.rows[0] = []perp.Row{naming(3, site), naming(4, unset)}
	next()
	fees("orders that name others, who have set theirs long ago",
		map[chain.Address]uint64{wallet: 11, site: 20, unset: 0})
	set(unset, 30)
	s.state.gone = []chain.Hash{{3}}
	s.state.rows[0] = nil
	next()
	fees("one is gone, and one has set his", map[chain.Address]uint64{wallet: 11, site: 0, unset: 30})
	s.state.feeless = errors.New("down")
	s.state.rev++
	s.state.rows[0] = []perp.Row{naming(5, site)}
	if err := s.reload(t.Context()); err == nil {
		t.Error("nobody is told that the database is away")
	}
	s.state.feeless = nil
	next()
	fees("after the database was away", map[chain.Address]uint64{wallet: 11, site: 20, unset: 30})
}
