package gmx

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

var nobody = chain.Hash{}

// Where every documented event goes, by its own words.
func TestEveryDocumentedEventIsRouted(t *testing.T) {
	order := chain.Hash{0x0d}
	owner := gmxtest.Account.Hash()
	for _, e := range gmxtest.Events() {
		log := e.Log(emitter, nil)
		given := perp.Fields{"orderKey": order}
		if _, has := e.Items["key"]; has {
			given["key"] = order
		}
		if e.Name == "InsolventClose" || e.Name == "PositionFeesCollected" || e.Name == "PositionFeesInfo" ||
			e.Items["key"] != "" {
			log = e.Log(emitter, given)
		}
		// A creation of the order in the same transaction tells whose it is.
		logs := transaction(event("OrderCreated", perp.Fields{"key": order}), log)
		routes, err := NewRouter(1).Route(logs)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if want := expectedRoute(e, log, owner); routes[1] != want {
			t.Errorf("%s goes to %s, want %s", e.Name, routes[1], want)
		}
	}
}

// expectedRoute follows the design's words, not the table: an account's own event to the account, a market's to the
// market, the rest to partition 0.
func expectedRoute(e gmxtest.Documented, log chain.Log, owner chain.Hash) chain.Hash {
	shared := []string{"VirtualSwapInventoryUpdated", "VirtualPositionInventoryUpdated", "GlvMarketAdded",
		"GlvMarketRemoved", "SignerAdded",
		"SignerRemoved", "UiFeeFactorUpdated"}
	ofOrder := []string{"InsolventClose", "PositionFeesCollected", "PositionFeesInfo",
		"PositionCollateralUsedForExecutionFee",
		"OrderSizeDeltaAutoUpdated", "OrderCollateralDeltaAmountAutoUpdated", "InitializeOrderUpdatedAtTime",
		"InitializePositionIncreasedAtTime", "InitializePositionDecreasedAtTime"}
	personal := []string{"account", "keeper", "receiver", "callbackContract", "fromAccount", "affiliate", "originator"}
	switch {
	case slices.Contains(ofOrder, e.Name):
		return owner
	case slices.Contains(shared, e.Name):
		return nobody
	case len(e.Topics) == 2 && e.Topics[0] == "key":
		return log.Topics[3]
	case len(e.Topics) > 0 && slices.Contains(personal, e.Topics[0]):
		return log.Topics[2]
	case len(e.Topics) > 0 && (e.Topics[0] == "market" || e.Topics[0] == "marketToken"):
		return log.Topics[2]
	}
	return nobody
}

// Every row is written by one routing key, and what a routing key's logs say alone is what they say within the whole
// transaction.
func TestEveryRowHasOneWriter(t *testing.T) {
	for _, name := range recordings(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			txs := readRecording(t, name)
			address := txs[0].logs[0].Address
			decoder, router := NewDecoder(address), NewRouter(1000)
			writer := map[perp.RowKey]chain.Hash{}
			for _, tx := range txs {
				routes, err := router.Route(tx.logs)
				if err != nil {
					t.Fatal(err)
				}
				parts := map[chain.Hash][]chain.Log{}
				for i, l := range tx.logs {
					parts[routes[i]] = append(parts[routes[i]], l)
				}
				whole, err := decoder.Transaction(tx.logs, tx.timeMs)
				if err != nil {
					t.Fatal(err)
				}
				events := 0
				for route, logs := range parts {
					part, err := decoder.Transaction(logs, tx.timeMs)
					if err != nil {
						t.Fatalf("the part of %s: %v", route, err)
					}
					events += len(part)
					for _, e := range part {
						noteWriter(t, writer, e, route)
					}
				}
				if events != len(whole) {
					t.Errorf("the parts say %d things, the transaction %d", events, len(whole))
				}
			}
			if len(writer) < 20 {
				t.Errorf("only %d rows were seen", len(writer))
			}
		})
	}
}

func noteWriter(t *testing.T, writer map[perp.RowKey]chain.Hash, e perp.Event, route chain.Hash) {
	for _, key := range e.Touches() {
		if v, isValue := e.(perp.MarketValued); isValue && v.Values[0].Scope.IsZero() {
			continue // market 0x0 is none: nothing is written
		}
		if key.Table.Replicated() {
			continue // each partition writes its own, and reads it beside other rows
		}
		if before, seen := writer[key]; seen && before != route {
			t.Errorf("%T: row %v is written by %s and by %s", e, key, before, route)
		}
		writer[key] = route
	}
}

func TestOwnersAreRemembered(t *testing.T) {
	r := NewRouter(2)
	created := func(n byte) []chain.Log {
		return transaction(event("OrderCreated", perp.Fields{"key": chain.Hash{n}, "account": chain.Address{n}}))
	}
	late := func(n byte) []chain.Log {
		return transaction(event("InitializeOrderUpdatedAtTime", perp.Fields{"key": chain.Hash{n}}))
	}
	for n := byte(1); n <= 7; n++ {
		if _, err := r.Route(created(n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []byte{6, 7} {
		if routes, err := r.Route(late(n)); err != nil || routes[0] != (chain.Address{n}).Hash() {
			t.Errorf("order %d: %v, %v", n, routes, err)
		}
	}
	var unknown *UnknownOwnerError
	if _, err := r.Route(late(1)); !errors.As(err, &unknown) || unknown.Key != (chain.Hash{1}) {
		t.Errorf("a forgotten order: %v", err)
	}
	if n := len(r.owners.recent) + len(r.owners.former); n > 4 {
		t.Errorf("%d owners are kept", n)
	}
	r.Learn(chain.Hash{1}, chain.Address{1})
	if routes, err := r.Route(late(1)); err != nil || routes[0] != (chain.Address{1}).Hash() {
		t.Errorf("a learnt order: %v, %v", routes, err)
	}
	// A reorg may give the key to another account.
	if _, err := r.Route(transaction(event("OrderCreated",
		perp.Fields{"key": chain.Hash{1}, "account": chain.Address{9}}))); err != nil {
		t.Fatal(err)
	}
	if routes, err := r.Route(late(1)); err != nil || routes[0] != (chain.Address{9}).Hash() {
		t.Errorf("a key with a new owner: %v, %v", routes, err)
	}
}

// Who owns an order is forgotten when it ends: nothing names it any more, and an exchange has more of them every day.
func TestOwnersAreForgottenWithTheOrder(t *testing.T) {
	for _, end := range []string{"OrderExecuted", "OrderCancelled"} {
		r := NewRouter(10)
		fields := perp.Fields{"key": chain.Hash{1}, "account": chain.Address{2}}
		for _, logs := range [][]chain.Log{
			transaction(event("OrderCreated", fields)),
			transaction(event(end, fields), event("OrderSizeDeltaAutoUpdated", perp.Fields{"key": chain.Hash{1}})),
		} {
			routes, err := r.Route(logs)
			if err != nil || routes[len(routes)-1] != (chain.Address{2}).Hash() {
				t.Fatalf("%s: %v, %v", end, routes, err)
			}
		}
		if n := len(r.owners.recent) + len(r.owners.former); n > 0 {
			t.Errorf("%s: %d owners are kept", end, n)
		}
	}
}

func TestPositionsAreRemembered(t *testing.T) {
	r := NewRouter(10)
	increase := event("PositionIncrease", nil)
	if _, err := r.Route(transaction(increase)); err != nil {
		t.Fatal(err)
	}
	key := perp.PositionKey(gmxtest.Account, gmxtest.Market, gmxtest.Collateral, true)
	routes, err := r.Route(transaction(event("InitializePositionIncreasedAtTime", perp.Fields{"key": key})))
	if err != nil || routes[0] != gmxtest.Account.Hash() {
		t.Errorf("got %v, %v", routes, err)
	}
}

// What cannot be read, or is of no form of the EventEmitter, has nowhere to go; but an event with topics goes by
// them, to whoever says what is wrong with the rest.
func TestRouterRefusesWhatCannotBeRead(t *testing.T) {
	var unknown *UnknownEventError
	if _, err := NewRouter(1).
		Route(transaction(chain.Log{Address: emitter, Topics: []chain.Hash{{1}}})); !errors.As(err, &unknown) {
		t.Errorf("got %v", err)
	}
	launched := gmxtest.Log(emitter, "OrderLaunched", nil, nil)
	launched.Data = append(launched.Data, 0)
	var decode *DecodeError
	if _, err := NewRouter(1).Route(transaction(launched)); !errors.As(err, &decode) {
		t.Errorf("got %v", err)
	}
	damaged := event("PositionIncrease", nil)
	damaged.Data = damaged.Data[:200]
	if routes, err := NewRouter(1).Route(transaction(damaged)); err != nil ||
		routes[0] != gmxtest.Account.Hash() {
		t.Errorf("got %v, %v", routes, err)
	}
}
