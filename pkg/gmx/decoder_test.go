package gmx

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

var emitter = chain.Address{0xee}

// transaction numbers logs as those of one transaction.
func transaction(logs ...chain.Log) []chain.Log {
	for i := range logs {
		logs[i].Block, logs[i].TxHash, logs[i].Index = 7, chain.Hash{0x77}, uint32(10+i)
	}
	return logs
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

func event(name string, given perp.Fields) chain.Log { return gmxtest.Event(emitter, name, given) }

// The logs that the contracts send with others, and that others need.
var (
	someFees     = sync.OnceValue(func() chain.Log { return event("PositionFeesCollected", nil) })
	someDecrease = sync.OnceValue(func() chain.Log { return event("PositionDecrease", nil) })
)

// whole makes a transaction of a log and those that the contracts would send with it.
func whole(l chain.Log) []chain.Log {
	if len(l.Topics) < 2 {
		return transaction(l)
	}
	fees, decrease := someFees(), someDecrease()
	switch l.Topics[1] {
	case decrease.Topics[1]:
		return transaction(fees, l)
	case fees.Topics[1]:
		return transaction(l, decrease)
	case chain.Keccak256([]byte("InsolventClose")):
		return transaction(l, fees, decrease)
	}
	return transaction(l)
}

// Each item a handled event needs is demanded by name and by type: without it, or with another type in its place, the
// error names event, item, transaction and log. An item more is none of our business: later versions append.
func TestDecoderNamesWhatIsMissing(t *testing.T) {
	for _, e := range gmxtest.Events() {
		if !slices.Contains(eventNames(true), e.Name) {
			continue
		}
		sample, topics := e.Fields(nil), e.Log(emitter, nil).Topics[2:]
		for item := range e.Items {
			for _, change := range []string{"missing", "a bool"} {
				items := maps.Clone(sample)
				switch {
				case change == "missing":
					delete(items, item)
				case e.Items[item] == "bool":
					items[item] = chain.U64(1)
				default:
					items[item] = true
				}
				checkRefused(t, e.Name, item, change, whole(gmxtest.Log(emitter, e.Name, topics, items)))
			}
		}
		items := e.Fields(perp.Fields{"somethingNew": chain.U64(1), "aListOfIt": []string{"new"}})
		if _, err := NewDecoder(emitter).Transaction(whole(gmxtest.Log(emitter, e.Name, topics, items)),
			1); err != nil {
			t.Errorf("%s with items more: %v", e.Name, err)
		}
	}
}

func checkRefused(t *testing.T, name, item, change string, logs []chain.Log) {
	t.Helper()
	_, err := NewDecoder(emitter).Transaction(logs, 1)
	isUnread := slices.Contains(unread[name], item)
	if err == nil {
		if !isUnread {
			t.Errorf("%s with item %s %s was accepted: have its decoder read it, or list it in unread of "+
				"pkg/gmx/decoder_test.go", name, item, change)
		}
		return
	}
	if isUnread && change == "missing" {
		t.Errorf("%s: item %s is thought to be unread, but its lack is noticed: %v", name, item, err)
	}
	var decode *DecodeError
	hash := chain.Keccak256([]byte(name))
	if !errors.As(err, &decode) || decode.Event != name || decode.TxHash != (chain.Hash{0x77}) ||
		logs[decode.Index-10].Topics[1] != hash {
		t.Errorf("%s with item %s %s: %v", name, item, change, err)
	}
	if !strings.Contains(err.Error(), item) {
		t.Errorf("%s: the error does not name item %s: %v", name, item, err)
	}
}

// unread lists the items of handled events that may be missing, most of them because no state comes from them.
var unread = map[string][]string{
	"SetStaticPriceForToken": {"provider"}, // SetOracleProviderForToken beside it says it
	"PositionIncrease": {"executionPrice", "indexTokenPrice.max", "indexTokenPrice.min", "collateralTokenPrice.max",
		"collateralTokenPrice.min",
		"sizeDeltaInTokens", "orderType", "collateralDeltaAmount", "pendingPriceImpactUsd"},
	"PositionDecrease": {"indexTokenPrice.max", "indexTokenPrice.min", "collateralTokenPrice.max",
		"collateralTokenPrice.min",
		"sizeDeltaInTokens", "values.priceImpactDiffUsd", "uncappedBasePnlUsd", "proportionalPendingImpactUsd",
		"totalImpactUsd"},
	"OrderExecuted": {"account"}, "OrderUpdated": {"account"}, "OrderCancelled": {"account"},
	"OrderFrozen":               {"account"},
	"OrderSizeDeltaAutoUpdated": {"sizeDeltaUsd"}, "OrderCollateralDeltaAmountAutoUpdated": {"collateralDeltaAmount"},
	"DepositExecuted":    {"account", "longTokenAmount", "shortTokenAmount", "receivedMarketTokens", "swapPricingType"},
	"DepositCancelled":   {"account"},
	"WithdrawalExecuted": {"account", "swapPricingType"}, "WithdrawalCancelled": {"account"},
	"ShiftExecuted": {"account", "receivedMarketTokens"}, "ShiftCancelled": {"account"},
	"GlvDepositExecuted": {"account", "receivedGlvTokens", "receivedMarketTokens"}, "GlvDepositCancelled": {"account"},
	"GlvWithdrawalExecuted": {"account"}, "GlvWithdrawalCancelled": {"account"},
	"GlvShiftExecuted":  {"receivedMarketTokens"},
	"PoolAmountUpdated": {"delta"}, "SwapImpactPoolAmountUpdated": {"delta"},
	"PositionImpactPoolAmountUpdated":     {"delta"},
	"PositionImpactPoolDistributed":       {"distributionAmount"},
	"LentPositionImpactPoolAmountUpdated": {"delta"}, "TotalPendingImpactAmountUpdated": {"delta"},
	"OpenInterestUpdated": {"delta"}, "OpenInterestInTokensUpdated": {"delta"}, "CollateralSumUpdated": {"delta"},
	"CumulativeBorrowingFactorUpdated": {"delta"}, "FundingFeeAmountPerSizeUpdated": {"delta"},
	"ClaimableFundingAmountPerSizeUpdated": {"delta"},
	"VirtualSwapInventoryUpdated":          {"delta", "market"}, "VirtualPositionInventoryUpdated": {"token"},
	"AdlStateUpdated":       {"pnlToPoolFactor", "maxPnlFactor"},
	"PositionFeesCollected": unreadFees(),
}

// unreadFees is everything about fees but the five amounts that a settlement names, its keys and its kind.
func unreadFees() (names []string) {
	for _, e := range gmxtest.Events() {
		for item := range e.Items {
			if e.Name == "PositionFeesCollected" && !slices.Contains(readFees, item) {
				names = append(names, item)
			}
		}
	}
	return names
}

var readFees = []string{"orderKey", "positionKey", "isIncrease", "fundingFeeAmount", "borrowingFeeAmount",
	"positionFeeAmount", "totalCostAmount",
	"liquidationFeeAmount"}

func TestDecoderRefuses(t *testing.T) {
	executed := event("OrderExecuted", nil)
	foreign := executed
	foreign.Address = chain.Address{1}
	renamed := executed
	renamed.Topics = slices.Clone(executed.Topics)
	renamed.Topics[1] = chain.Keccak256([]byte("OrderCancelled"))
	oldVariant := gmxtest.Log(emitter, "OrderExecuted", executed.Topics[2:3], perp.Fields{"key": chain.Hash{1}})
	otherOwner := executed
	otherOwner.Topics = slices.Clone(executed.Topics)
	otherOwner.Topics[3] = chain.Address{0xbb}.Hash()
	noData := executed
	noData.Data = nil

	for name, test := range map[string]struct {
		log  chain.Log
		want string
	}{
		"another contract":      {foreign, "not of the EventEmitter"},
		"a name unlike topic 1": {renamed, "not the hash of its name"},
		"another version":       {oldVariant, "has 1 topics of its own, want 2"},
		"owner unlike topic":    {otherOwner, `item "account"`},
		"no data":               {noData, "ends at byte 0"},
		"unknown order type": {event("OrderCreated", perp.Fields{"orderType": chain.U64(9)}),
			"not among the known 0 to 8"},
		"wrong position key": {event("PositionIncrease", perp.Fields{"positionKey": chain.Hash{1}}),
			"its parts hash to"},
		"amount out of range": {event("Funding", perp.Fields{"fundingFactorPerSecond": chain.Pow10(77)}),
			"out of range"},
		"debt without decrease": {event("InsolventClose", nil), "no PositionDecrease"},
	} {
		if _, err := NewDecoder(emitter).Transaction(transaction(test.log), 1); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func TestTransactionIsOne(t *testing.T) {
	logs := transaction(event("OrderExecuted", nil), event("Funding", nil))
	other := slices.Clone(logs)
	other[1].TxHash = chain.Hash{0x78}
	for name, logs := range map[string][]chain.Log{"two transactions": other, "out of order": {logs[1], logs[0]},
		"twice": {logs[0], logs[0]}} {
		if _, err := NewDecoder(emitter).Transaction(logs, 1); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestInsolventCloseIsJoined(t *testing.T) {
	order := chain.Hash{0x0d}
	logs := transaction(slices.Concat(
		[]chain.Log{event("InsolventClose", perp.Fields{"orderKey": order})},
		gmxtest.Decrease(emitter, perp.Fields{"orderKey": chain.Hash{0x0e}}),
		gmxtest.Decrease(emitter, perp.Fields{"orderKey": order, "account": chain.Address{5}}),
	)...)
	events, err := NewDecoder(emitter).Transaction(logs, 1234)
	if err != nil {
		t.Fatal(err)
	}
	debt := events[0].(perp.ClosedInsolvent).Debt
	if debt.Account != (chain.Address{5}) || debt.Market != gmxtest.Market ||
		debt.PositionKey != events[3].(perp.PositionDecreased).Position.PositionKey {
		t.Errorf("joined with the wrong position: %+v", debt)
	}
	if want := (perp.Stamp{Block: 7, Log: 10, TxHash: chain.Hash{0x77}, TimeMs: 1234}); debt.Stamp != want {
		t.Errorf("stamp %+v, want %+v", debt.Stamp, want)
	}
}

// LIQ-11: what a decrease came to is the decrease and the fees of its own order.
func TestDecreaseIsSettledWithItsFees(t *testing.T) {
	decrease := perp.Fields{"orderKey": chain.Hash{1}, "executionPrice": chain.U64(5), "basePnlUsd": chain.I64(-6),
		"orderType": chain.U64(7)}
	logs := gmxtest.Decrease(emitter, decrease)
	other := gmxtest.Decrease(emitter, perp.Fields{"orderKey": chain.Hash{2}, "isLong": false})
	events, err := NewDecoder(emitter).Transaction(transaction(other[0], logs[0], logs[1], other[1]), 1234)
	if err != nil || len(events) != 4 {
		t.Fatalf("got %v, %v", events, err)
	}
	s := events[1].(perp.PositionSettled).Settlement
	amount := func(item string) chain.Uint {
		fields, err := eventItems(event("PositionFeesCollected", nil).Data)
		if err != nil {
			t.Fatal(err)
		}
		return fields[item].(chain.Uint)
	}
	if s.OrderKey != (chain.Hash{1}) || !s.IsLong || s.OrderType != perp.Liquidation ||
		s.ExecutionPrice != chain.U64(5) || s.BasePnlUsd != chain.I64(-6) ||
		s.FundingFeeAmount != amount("fundingFeeAmount") || s.BorrowingFeeAmount != amount("borrowingFeeAmount") ||
		s.PositionFeeAmount != amount("positionFeeAmount") ||
		s.LiquidationFeeAmount != amount("liquidationFeeAmount") ||
		s.TotalCostAmount != amount("totalCostAmount") || s.Stamp.Log != 12 || s.Account != gmxtest.Account {
		t.Errorf("got %+v", s)
	}
	if p := events[0].(perp.PositionDecreased).Position; p.PositionKey != s.PositionKey {
		t.Errorf("settled %s, decreased %s", s.PositionKey, p.PositionKey)
	}
	if s := events[3].(perp.PositionSettled).Settlement; s.OrderKey != (chain.Hash{2}) || s.IsLong {
		t.Errorf("got %+v", s)
	}
}

func TestSettlementNeedsItsOwnFees(t *testing.T) {
	logs := gmxtest.Decrease(emitter, nil)
	increase := event("PositionFeesCollected", perp.Fields{"isIncrease": true})
	strange := event("PositionFeesCollected", perp.Fields{"positionKey": chain.Hash{9}})
	for name, test := range map[string]struct {
		logs []chain.Log
		want string
	}{
		"no fees":                   {logs[1:], "no PositionFeesCollected of its order"},
		"fees of an increase":       {[]chain.Log{increase, logs[1]}, "no PositionFeesCollected of its order"},
		"fees of another position":  {[]chain.Log{strange, logs[1]}, "is of position 0x09"},
		"half of a liquidation fee": {[]chain.Log{halfFee(), logs[1]}, `item "liquidationFeeAmount" is missing`},
	} {
		if _, err := NewDecoder(emitter).Transaction(transaction(test.logs...), 1); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// feesWithout is PositionFeesCollected with some items taken away.
func feesWithout(items ...string) chain.Log {
	log := event("PositionFeesCollected", nil)
	fields, err := eventItems(log.Data)
	if err != nil {
		panic(err)
	}
	for _, item := range items {
		delete(fields, item)
	}
	return gmxtest.Log(emitter, "PositionFeesCollected", log.Topics[2:], fields)
}

func halfFee() chain.Log { return feesWithout("liquidationFeeAmount") }

// v2.2 gives the items of a liquidation fee only where there is one.
func TestNoLiquidationFeeIsZero(t *testing.T) {
	fees := feesWithout("liquidationFeeAmount", "liquidationFeeReceiverFactor", "liquidationFeeAmountForFeeReceiver")
	events, err := NewDecoder(emitter).Transaction(transaction(fees, event("PositionDecrease", nil)), 1)
	if err != nil || !events[1].(perp.PositionSettled).Settlement.LiquidationFeeAmount.IsZero() {
		t.Errorf("got %+v, %v", events, err)
	}
}

func TestKeeperIsPaid(t *testing.T) {
	log := event("KeeperExecutionFee", perp.Fields{"keeper": chain.Address{4}, "executionFeeAmount": chain.U64(900)})
	events, err := NewDecoder(emitter).Transaction(transaction(event("OrderExecuted", nil), log), 1234)
	want := perp.KeeperPaid{Fee: perp.KeeperFee{
		Keeper: chain.Address{4}, Amount: chain.U64(900), Stamp: perp.Stamp{Block: 7, Log: 11, TxHash: chain.Hash{0x77},
			TimeMs: 1234},
	}}
	if err != nil || events[1] != perp.Event(want) {
		t.Errorf("got %+v, %v", events, err)
	}
	log.Topics[2] = chain.Hash{1}
	if _, err := NewDecoder(emitter).Transaction(transaction(log), 1); err == nil ||
		!strings.Contains(err.Error(), `item "keeper"`) {
		t.Errorf("a topic of another keeper: %v", err)
	}
}

func TestStartingInventories(t *testing.T) {
	id, side := chain.Hash{0x1d}, perp.BoolWord(true)
	for name, test := range map[string]struct {
		event string
		base  string
		args  []byte
		value any
		want  perp.MarketValue
	}{
		"swaps": {"SetUint", "VIRTUAL_INVENTORY_FOR_SWAPS", append(id[:], side[:]...), chain.U64(5),
			perp.MarketValue{Measure: perp.VirtualInventoryForSwaps, Scope: id, IsLong: true, Value: chain.I64(5)}},
		"positions": {"SetInt", "VIRTUAL_INVENTORY_FOR_POSITIONS", id[:], chain.I64(-5),
			perp.MarketValue{Measure: perp.VirtualInventoryForPositions, Scope: id, Value: chain.I64(-5)}},
		"positions in tokens": {"SetInt", "VIRTUAL_INVENTORY_FOR_POSITIONS_IN_TOKENS", id[:], chain.I64(7),
			perp.MarketValue{Measure: perp.VirtualInventoryForPositionsInTokens, Scope: id, Value: chain.I64(7)}},
	} {
		base := perp.BaseKey(test.base)
		log := gmxtest.Log(emitter, test.event, []chain.Hash{base},
			perp.Fields{"baseKey": base, "data": perp.Bytes(test.args), "value": test.value})
		events, err := NewDecoder(emitter).Transaction(transaction(log), 1)
		if err != nil || len(events) != 2 {
			t.Errorf("%s: %v, %v", name, events, err)
			continue
		}
		if p := events[0].(perp.ParameterSet).Parameter; p.Key != perp.FullKey(base, test.args) {
			t.Errorf("%s: parameter %+v", name, p)
		}
		// Every partition gets the log, and one of them keeps the inventory.
		whole, err := NewDecoder(emitter).For(0).Transaction(transaction(log), 1)
		part, partErr := NewDecoder(emitter).For(3).Transaction(transaction(log), 1)
		if err != nil || partErr != nil || len(whole) != 2 || len(part) != 1 || part[0] != events[0] {
			t.Errorf("%s: partition 0 says %v, %v, partition 3 %v, %v", name, whole, err, part, partErr)
		}
		got := events[1].(perp.MarketValued).Values[0]
		if got.Stamp = (perp.Stamp{}); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// The recordings of the original contracts decode to the last log.
func TestRecordingsDecode(t *testing.T) {
	for _, name := range recordings(t) {
		txs := readRecording(t, name)
		d := NewDecoder(txs[0].logs[0].Address)
		for _, tx := range txs {
			if _, err := d.Transaction(tx.logs, tx.timeMs); err != nil {
				t.Errorf("%s: %v", filepath.Base(name), err)
			}
		}
	}
}

// LIQ-11: every decrease of the recordings is settled, an insolvent one without fees; every fee of a keeper is kept.
func TestRecordingsSettle(t *testing.T) {
	for _, name := range recordings(t) {
		logs, events, insolvent, paid := map[chain.Hash]int{}, map[string]int{}, map[chain.Hash]bool{}, false
		txs := readRecording(t, name)
		d := NewDecoder(txs[0].logs[0].Address)
		for _, tx := range txs {
			for _, l := range tx.logs {
				logs[l.Topics[1]]++
			}
			decoded, err := d.Transaction(tx.logs, tx.timeMs)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range decoded {
				events[fmt.Sprintf("%T", e)]++
				switch e := e.(type) {
				case perp.ClosedInsolvent:
					insolvent[e.Debt.OrderKey] = true
				case perp.PositionSettled:
					invented := filepath.Base(name) == "story.jsonl.gz"
					if !invented && insolvent[e.Settlement.OrderKey] &&
						!(e.Settlement.TotalCostAmount.IsZero() && e.Settlement.FundingFeeAmount.IsZero()) {
						t.Errorf("%s: an insolvent close paid fees: %+v", filepath.Base(name), e.Settlement)
					}
					paid = paid || !e.Settlement.PositionFeeAmount.IsZero()
				}
			}
		}
		for event, kind := range map[string]string{"PositionDecrease": "perp.PositionSettled",
			"KeeperExecutionFee": "perp.KeeperPaid"} {
			if want := logs[chain.Keccak256([]byte(event))]; events[kind] != want || want == 0 {
				t.Errorf("%s: %d of %s, want %d", filepath.Base(name), events[kind], kind, want)
			}
		}
		if charges := filepath.Base(name) != "trading-and-liquidation.jsonl.gz"; paid != charges {
			t.Errorf("%s: fees were paid: %v", filepath.Base(name), paid)
		}
	}
}

// FuzzTransaction feeds any data under any event's name to everything that reads logs. Nothing panics, and every
// refusal names the log; what is accepted, the rules of pkg/perp take or refuse with an error of their own.
func FuzzTransaction(f *testing.F) {
	for _, e := range gmxtest.Events() {
		l := e.Log(emitter, nil)
		f.Add(e.Name, len(l.Topics), l.Data)
	}
	f.Fuzz(func(t *testing.T, name string, topics int, data []byte) {
		l := chain.Log{Address: emitter, Data: data, Topics: []chain.Hash{{}, chain.Keccak256([]byte(name)), {1}, {2}}}
		if topics < 0 || topics > len(l.Topics) {
			return
		}
		l.Topics = l.Topics[:topics]
		if topics >= 2 && topics <= 4 {
			l.Topics[0] = eventLogTopics[topics-2]
		}
		logs := whole(l)
		events, err := NewDecoder(emitter).Transaction(logs, 1)
		checkFault(t, err)
		_, err = NewRouter(10).Route(logs)
		checkFault(t, err)
		_, err = NewDecoder(emitter).Outcome(logs, chain.Hash{1})
		checkFault(t, err)
		book := perp.NewBook()
		for _, e := range events {
			if err := perp.Apply(book, e); err != nil {
				return
			}
		}
	})
}

func checkFault(t *testing.T, err error) {
	t.Helper()
	var unknown *UnknownEventError
	var decode *DecodeError
	var owner *UnknownOwnerError
	if err != nil && !errors.As(err, &unknown) && !errors.As(err, &decode) && !errors.As(err, &owner) {
		t.Fatalf("the error names no event: %v", err)
	}
}
