package gmx

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

// formV21 returns the log of an event as v2.1 had it, and its items.
func formV21(t *testing.T, name string, given perp.Fields) (chain.Log, perp.Fields) {
	t.Helper()
	for _, e := range gmxtest.EventsV21() {
		if e.Name == name {
			return e.Log(emitter, given), e.Fields(given)
		}
	}
	t.Fatalf("v2.1 had no %s of its own", name)
	return chain.Log{}, nil
}

func decodeOne[E perp.Event](t *testing.T, logs ...chain.Log) (found E) {
	t.Helper()
	events, err := NewDecoder(emitter).Transaction(transaction(logs...), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if is, ok := e.(E); ok {
			return is
		}
	}
	t.Fatalf("no %T among %v", found, events)
	return found
}

// v2.1 settles the price impact at once: nothing is pending.
func TestIncreaseOfV21LeavesNothingPending(t *testing.T) {
	log, _ := formV21(t, "PositionIncrease", perp.Fields{"priceImpactAmount": perp.I64(-7), "sizeInUsd": perp.U64(9)})
	if e := decodeOne[perp.PositionIncreased](t, log); e.Impact != (perp.Int{}) || e.Position.SizeInUsd != perp.U64(9) {
		t.Errorf("got %+v", e)
	}
}

func TestOrderOfV21(t *testing.T) {
	log, items := formV21(t, "OrderCreated", nil)
	o := decodeOne[perp.OrderCreated](t, log).Order
	if o.Key != items["key"] || o.UpdatedAtTime != items["updatedAtTime"] || o.AutoCancel ||
		!o.ValidFromTime.IsZero() || !o.SrcChainID.IsZero() ||
		!o.CancellationReceiver.IsZero() || o.DataList == nil || len(o.DataList) != 0 {
		t.Errorf("got %+v", o)
	}
	update, _ := formV21(t, "OrderUpdated", nil)
	if e := decodeOne[perp.OrderChanged](t, update); e.ValidFromTime != nil || e.AutoCancel != nil ||
		e.DataList != nil {
		t.Errorf("an update changes what v2.1 does not have: %+v", e)
	}
	frozen, _ := formV21(t, "OrderCreated", perp.Fields{"isFrozen": true})
	if _, err := NewDecoder(emitter).Transaction(transaction(frozen), 1); err == nil ||
		!strings.Contains(err.Error(), "cannot be created frozen") {
		t.Errorf("got %v", err)
	}
}

func TestSettlementOfV21(t *testing.T) {
	fees, items := formV21(t, "PositionFeesCollected", nil)
	decrease, _ := formV21(t, "PositionDecrease", nil)
	s := decodeOne[perp.PositionSettled](t, fees, decrease).Settlement
	if s.TotalCostAmount != items["totalCostAmount"] || !s.LiquidationFeeAmount.IsZero() {
		t.Errorf("got %+v", s)
	}
}

func TestRequestsOfV21(t *testing.T) {
	for _, name := range []string{"DepositCreated", "WithdrawalCreated", "ShiftCreated", "GlvDepositCreated"} {
		log, items := formV21(t, name, nil)
		r := decodeOne[perp.RequestCreated](t, log).Request
		if r.Key != items["key"] || r.UpdatedAtTime != items["updatedAtTime"] || len(r.Fields) != len(items) {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

func TestMarketOfV21(t *testing.T) {
	log, items := formV21(t, "MarketCreated", nil)
	if m := decodeOne[perp.MarketListed](t, log).Market; m.MarketToken != items["marketToken"] ||
		!m.MarketType.IsZero() {
		t.Errorf("got %+v", m)
	}
}

// v2.1 has events of its own for words that v2.2 sets by SetUint and SetBool.
func TestParametersOfV21(t *testing.T) {
	provider, market := chain.Address{0x50}, chain.Address{0x3a}
	for name, test := range map[string]struct {
		given perp.Fields
		want  perp.Parameter
	}{
		"SetOracleProviderEnabled": {perp.Fields{"provider": provider, "value": true},
			perp.Parameter{Key: perp.DataStoreKey("IS_ORACLE_PROVIDER_ENABLED", provider.Hash()),
				Value: perp.BoolWord(true)}},
		"SetAtomicOracleProvider": {perp.Fields{"provider": provider, "value": false},
			perp.Parameter{Key: perp.DataStoreKey("IS_ATOMIC_ORACLE_PROVIDER", provider.Hash())}},
		"ConfigSetFundingRate": {perp.Fields{"market": market, "maxFundingFactorPerSecond": perp.U64(7)},
			perp.Parameter{Key: perp.DataStoreKey("MAX_FUNDING_FACTOR_PER_SECOND", market.Hash()), Value: perp.U64(7).
				Bytes32()}},
	} {
		log, _ := formV21(t, name, test.given)
		p := decodeOne[perp.ParameterSet](t, log).Parameter
		if p.Key != test.want.Key || p.Value != test.want.Value || p.Source != perp.FromEvent {
			t.Errorf("%s: got %+v, want %+v", name, p, test.want)
		}
		if !IsParameter(log) {
			t.Errorf("%s is no parameter", name)
		}
	}
}

// Nothing between the versions is guessed: the items of one, some items of the other.
func TestFormsOfNeitherVersion(t *testing.T) {
	for name, test := range map[string]struct {
		event string
		more  perp.Fields
		less  []string
		want  string
	}{
		"frozen flag and automatic end": {"OrderCreated", perp.Fields{"autoCancel": true}, nil,
			`item "cancellationReceiver" is missing, which v2.2 has`},
		"all items of both": {"PositionIncrease", perp.Fields{"pendingPriceImpactAmount": perp.I64(1)}, nil, "beside"},
		"impact of neither": {"PositionIncrease", nil, []string{"priceImpactAmount"},
			`neither the item "priceImpactAmount" of v2.1 nor "pendingPriceImpactAmount"`},
		"half of v2.1": {"OrderCreated", nil, []string{"updatedAtBlock"},
			`item "updatedAtBlock" is missing, which v2.1 has`},
		"half of v2.2": {"OrderUpdated", perp.Fields{"autoCancel": true}, nil,
			`item "validFromTime" is missing, which v2.2 has`},
		"a deposit of both": {"DepositCreated", perp.Fields{"srcChainId": perp.U64(0)}, nil,
			`item "uiFeeReceiver" is missing, which v2.2 has`},
	} {
		log, items := formV21(t, test.event, test.more)
		for _, item := range test.less {
			delete(items, item)
		}
		_, err := NewDecoder(emitter).Transaction(transaction(gmxtest.Log(emitter, test.event, log.Topics[2:], items)),
			1)
		var decode *DecodeError
		if !errors.As(err, &decode) || decode.Event != test.event || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// v2.0 and older are refused in a line that names event and version.
func TestVersionsBefore21AreRefused(t *testing.T) {
	var forms []chain.Log
	for event, item := range broughtByV21 {
		for _, e := range slices.Concat(gmxtest.Events(), gmxtest.EventsV21()) {
			if e.Name == event {
				items := e.Fields(nil)
				delete(items, item)
				forms = append(forms, gmxtest.Log(emitter, event, e.Log(emitter, nil).Topics[2:], items))
			}
		}
	}
	for _, name := range []string{"OrderExecuted", "OrderUpdated", "OrderCancelled", "OrderFrozen"} { // EventLog1(key)
		forms = append(forms, gmxtest.Log(emitter, name, []chain.Hash{{1}}, perp.Fields{"key": chain.Hash{1}}))
	}
	// EventLog
	for _, name := range []string{"DepositExecuted", "DepositCancelled", "WithdrawalExecuted", "WithdrawalCancelled"} {
		forms = append(forms, gmxtest.Log(emitter, name, nil, perp.Fields{"key": chain.Hash{1}}))
	}
	for _, form := range forms {
		_, err := NewDecoder(emitter).Transaction(transaction(form), 1)
		var decode *DecodeError
		if !errors.As(err, &decode) || !errors.Is(err, errBeforeV21) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%x: got %v", form.Topics, err)
		}
	}
}

// Events that carry no state may have any shape; an unknown event is refused by name.
func TestShapeOfIgnoredEventsIsFree(t *testing.T) {
	for _, name := range IgnoredEvents() {
		strange := gmxtest.Log(emitter, name, []chain.Hash{{1}, {2}}, perp.Fields{"new": []string{"x"}})
		strange.Data = append(strange.Data, 1, 2, 3)
		if events, err := NewDecoder(emitter).Transaction(transaction(strange), 1); err != nil || len(events) > 0 {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
}
