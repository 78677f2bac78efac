package planner

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/due"
)

// swapDesk has a pool of 1000 ETH and as much in USDC, without fees, and a limit swap of one ETH for $4600.
func swapDesk() (*fixture, perp.Order) {
	d, own := newFixture(), ethMarket.MarketToken.Hash()
	put := func(r perp.Row) { d.book.rows[r.RowKey()] = r }
	set := func(v chain.Uint, name string, args ...chain.Hash) {
		put(perp.Parameter{Key: perp.DataStoreKey(name, args...), Value: v.Bytes32()})
	}
	for token, amount := range map[chain.Address]chain.Uint{eth: chain.Pow10(21), usdc: chain.U64(4_500_000).
		Mul(chain.Pow10(6))} {
		put(perp.MarketValue{Measure: perp.PoolAmount, Scope: own, Token: token, Value: amount.Int()})
		set(chain.Pow10(30), "MAX_POOL_AMOUNT", own, token.Hash())
	}
	for _, is := range []bool{false, true} {
		set(perp.One, "RESERVE_FACTOR", own, perp.BoolWord(is))
	}
	o := perp.Order{
		Key: chain.Hash{5}, Account: alice, OrderType: perp.LimitSwap, Status: perp.Created, Changes: 1,
		SwapPath:               []chain.Address{ethMarket.MarketToken},
		InitialCollateralToken: eth, InitialCollateralDeltaAmount: chain.Pow10(18), MinOutputAmount: chain.U64(4600).
					Mul(chain.Pow10(6)),
		UpdatedAtTime: chain.U64(nowMs/1000 - 100),
	}
	d.book.apply(d.changes(o))
	return d, o
}

func (d *fixture) swapMoment() *due.Moment {
	m := d.moment()
	m.Rules.FrozenRole = true
	return m
}

// TIER-9: a limit swap is found by the tick of any token on its path that brings its output to what it asks for, is
// born with it, and goes with it.
func TestATickReachesLimitSwaps(t *testing.T) {
	d, o := swapDesk()
	look := func(tokens ...chain.Address) (jobs, born int) {
		t.Helper()
		moved := map[chain.Address]bool{}
		for _, token := range tokens {
			moved[token] = true
		}
		fresh, err := d.look(d.book.reached(moved), d.swapMoment())
		if err != nil {
			t.Fatal(err)
		}
		return len(d.live.all()), len(fresh)
	}
	if jobs, _ := look(eth); jobs != 0 {
		t.Fatalf("%d jobs at $4500", jobs)
	}
	d.report(eth, dollarsPerEther(4601), nowMs+2000)
	if jobs, _ := look(btc); jobs != 0 {
		t.Fatal("a tick of a token that is not on the path finds it")
	}
	d.report(usdc, chain.Pow10(24), nowMs+1000)
	jobs, born := look(eth)
	if jobs != 1 || born != 1 {
		t.Fatalf("%d jobs at $4601, %d of them new", jobs, born)
	}
	if j := d.live.all()[0]; j.ID != job.OrderID(o.Key, 1) || !j.Frozen || j.DueSinceMs != nowMs+2000 {
		t.Errorf("%+v", j)
	}
	d.report(usdc, chain.Pow10(24).MulDiv(chain.U64(1001), chain.U64(1000)), nowMs+3000)
	if jobs, _ := look(usdc); jobs != 0 {
		t.Error("it is due although its output has fallen below what it asks for")
	}
	d.report(usdc, chain.Pow10(24), nowMs+4000)
	if jobs, born := look(usdc); jobs != 1 || born != 1 || d.live.all()[0].DueSinceMs != nowMs+4000 {
		t.Errorf("%d jobs, %d born anew", jobs, born)
	}
	d.book.shard(0).removeOrder(o.Key)
	if _, err := d.look(d.everywhere(), d.swapMoment()); err != nil || len(d.live.all()) != 0 {
		t.Errorf("after it is gone: %v, %v", d.live.all(), err)
	}
}

// Jobs of one market whose paths differ are born by the reports of their own tokens: a moment of the past that was put
// together for one of them is not another's.
func TestDueTimesOfDifferentPaths(t *testing.T) {
	d, o := swapDesk()
	own := btcMarket.MarketToken.Hash()
	for token, amount := range map[chain.Address]chain.Uint{btc: chain.Pow10(11), usdc: chain.U64(90_000_000).
		Mul(chain.Pow10(6))} {
		for _, row := range []perp.Row{
			perp.MarketValue{Measure: perp.PoolAmount, Scope: own, Token: token, Value: amount.Int()},
			perp.Parameter{Key: perp.DataStoreKey("MAX_POOL_AMOUNT", own, token.Hash()), Value: chain.Pow10(30).
				Bytes32()},
		} {
			d.book.rows[row.RowKey()] = row
		}
	}
	bitcoin := o
	bitcoin.Key, bitcoin.SwapPath, bitcoin.InitialCollateralToken = chain.Hash{6},
		[]chain.Address{btcMarket.MarketToken}, btc
	bitcoin.InitialCollateralDeltaAmount = chain.Pow10(8)
	bitcoin.MinOutputAmount = chain.U64(89_000).Mul(chain.Pow10(6))
	o.MinOutputAmount = chain.U64(4400).Mul(chain.Pow10(6))
	d.book.apply(d.changes(o, bitcoin))
	for second := range uint64(5) {
		for token, price := range map[chain.Address]chain.Uint{eth: dollarsPerEther(4500), btc: chain.U64(9).
			Mul(chain.Pow10(26)), usdc: chain.Pow10(24)} {
			d.report(token, price, nowMs+1000*second)
		}
	}
	if _, err := d.look(d.everywhere(), d.swapMoment()); err != nil {
		t.Fatal(err)
	}
	jobs := d.live.all()
	if len(jobs) != 2 {
		t.Fatalf("%d jobs", len(jobs))
	}
	for _, j := range jobs {
		if j.DueSinceMs != nowMs {
			t.Errorf("job %s is born at %d, want %d", j.ID, j.DueSinceMs, uint64(nowMs))
		}
	}
}
