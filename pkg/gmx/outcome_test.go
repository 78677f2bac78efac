package gmx

import (
	"bytes"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

func TestOutcome(t *testing.T) {
	key, other := chain.Hash{0x0d}, perp.Fields{"key": chain.Hash{0x0e}}
	about := func(name string) chain.Log { return event(name, perp.Fields{"key": key}) }
	position := perp.PositionKey(gmxtest.Account, gmxtest.Market, gmxtest.Collateral, true)
	decrease := func(kind perp.OrderType) chain.Log {
		return event("PositionDecrease", perp.Fields{"orderType": chain.U64(uint64(kind))})
	}
	foreign := about("OrderExecuted")
	foreign.Address = chain.Address{1}
	for name, test := range map[string]struct {
		key  chain.Hash
		logs []chain.Log
		want Result
	}{
		"no logs": {key, nil, Nothing},
		"order executed": {key, []chain.Log{event("OrderCancelled", other), about("OrderExecuted")},
			Executed},
		"order cancelled": {key, []chain.Log{event("OrderExecuted", other), about("OrderCancelled")},
			Cancelled},
		"order frozen":       {key, []chain.Log{about("OrderFrozen")}, Frozen},
		"order created only": {key, []chain.Log{about("OrderCreated")}, Nothing},
		"another order":      {key, []chain.Log{event("OrderExecuted", other)}, Nothing},
		"another contract":   {key, []chain.Log{foreign}, Nothing},
		"an unknown event beside": {key, []chain.Log{gmxtest.Log(emitter, "New", []chain.Hash{key}, nil),
			about("OrderExecuted")}, Executed},
		"deposit executed":     {key, []chain.Log{about("DepositExecuted")}, Executed},
		"deposit cancelled":    {key, []chain.Log{about("DepositCancelled")}, Cancelled},
		"withdrawal executed":  {key, []chain.Log{about("WithdrawalExecuted")}, Executed},
		"withdrawal cancelled": {key, []chain.Log{about("WithdrawalCancelled")}, Cancelled},
		"shift with inner requests": {key,
			[]chain.Log{event("WithdrawalExecuted", other), event("DepositExecuted", other), about("ShiftExecuted")},
			Executed},
		"glv deposit cancelled":   {key, []chain.Log{about("GlvDepositCancelled")}, Cancelled},
		"glv withdrawal executed": {key, []chain.Log{about("GlvWithdrawalExecuted")}, Executed},
		"glv shift executed":      {key, []chain.Log{about("GlvShiftExecuted")}, Executed},
		"position liquidated": {position, []chain.Log{decrease(perp.Liquidation), about("OrderExecuted")},
			Liquidated},
		"position deleveraged": {position,
			[]chain.Log{decrease(perp.MarketDecrease), about("OrderExecuted")}, Executed},
		"deleveraging brought up to date": {gmxtest.Market.Hash(), []chain.Log{event("AdlStateUpdated", nil)},
			Executed},
		"other market brought up to date": {chain.Hash{0x99}, []chain.Log{event("AdlStateUpdated", nil)}, Nothing},
		"another position liquidated":     {chain.Hash{0x99}, []chain.Log{decrease(perp.Liquidation)}, Nothing},
		"the order of a liquidated trader": {key, []chain.Log{decrease(perp.Liquidation), about("OrderCancelled")},
			Cancelled},
	} {
		got, err := NewDecoder(emitter).Outcome(transaction(test.logs...), test.key)
		if err != nil || got.Result != test.want {
			t.Errorf("%s: %+v, %v; want %s", name, got, err, test.want)
		}
	}
}

func TestOutcomeSaysWhy(t *testing.T) {
	cause := unhex(t, "0x730d44b1")
	log := event("OrderFrozen", perp.Fields{"key": chain.Hash{1}, "reason": "", "reasonBytes": perp.Bytes(cause)})
	got, err := NewDecoder(emitter).Outcome(transaction(log), chain.Hash{1})
	if err != nil || !bytes.Equal(got.ReasonBytes, cause) || got.Cause().Name != "OrderAlreadyFrozen" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOutcomeOfDamagedLog(t *testing.T) {
	log := event("OrderExecuted", perp.Fields{"key": chain.Hash{1}})
	log.Data = log.Data[:64]
	if got, err := NewDecoder(emitter).Outcome(transaction(log), chain.Hash{1}); err == nil {
		t.Errorf("got %+v", got)
	}
}

// Every execution of the recordings is found again by its key.
func TestOutcomeOnRecordings(t *testing.T) {
	for _, name := range recordings(t) {
		txs := readRecording(t, name)
		d := NewDecoder(txs[0].logs[0].Address)
		found := map[Result]int{}
		for _, tx := range txs {
			events, err := d.Transaction(tx.logs, tx.timeMs)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				var key chain.Hash
				want := Result("")
				switch e := e.(type) {
				case perp.OrderEnded:
					key, want = e.Key, map[perp.Status]Result{perp.Executed: Executed, perp.Cancelled: Cancelled,
						perp.Frozen: Frozen}[e.Status]
				case perp.RequestEnded:
					key, want = e.Key, map[perp.Status]Result{perp.Executed: Executed,
						perp.Cancelled: Cancelled}[e.Status]
				case perp.PositionDecreased:
					key, want = e.Position.PositionKey, Executed
					if e.OrderType == perp.Liquidation {
						want = Liquidated
					}
				default:
					continue
				}
				got, err := d.Outcome(tx.logs, key)
				if err != nil || got.Result != want {
					t.Errorf("%s: %s in %s: %+v, %v; want %s", name, key, tx.logs[0].TxHash, got, err, want)
				}
				found[got.Result]++
			}
		}
		if found[Executed] == 0 {
			t.Errorf("%s: nothing was executed", name)
		}
	}
}
