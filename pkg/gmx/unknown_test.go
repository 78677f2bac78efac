package gmx

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

// Which items say that rows may follow from an event that this build does not know, and whose. Those of administration
// are of releases that were announced, and of settings whose names only contain such a word.
func TestUnknownEventsAreSortedByTheirItems(t *testing.T) {
	account, market, key := chain.Address{0xac}, chain.Address{0x3a}, chain.Hash{0x0d, 1}
	other := chain.Hash{0x77}
	for name, test := range map[string]struct {
		topics []chain.Hash
		items  perp.Fields
		item   string // empty: administration
		route  chain.Hash
	}{
		"no items":          {nil, nil, "", nobody},
		"only topics":       {[]chain.Hash{account.Hash(), market.Hash()}, nil, "", nobody},
		"a workflow":        {[]chain.Hash{other, account.Hash()}, perp.Fields{"metadata": perp.Bytes{1}}, "", nobody},
		"a whitelist":       {nil, perp.Fields{"token": account}, "", nobody},
		"a provider":        {nil, perp.Fields{"oracle": market, "token": account, "provider": account}, "", nobody},
		"a parameter's key": {nil, perp.Fields{"baseKey": key, "actionKey": key, "data": perp.Bytes{}}, "", nobody},
		"a setting of orders": {nil, perp.Fields{"maxOrdersPerAccount": chain.U64(3), "orderHandler": account}, "",
			nobody},
		"a text of accounts": {nil, perp.Fields{"account": "of nobody"}, "", nobody},

		"an account":        {nil, perp.Fields{"account": account}, "account", account.Hash()},
		"another's account": {nil, perp.Fields{"fundingAccount": account}, "fundingAccount", account.Hash()},
		"who pays for another": {nil, perp.Fields{"account": account, "aPayingAccount": market}, "aPayingAccount",
			account.Hash()},
		"accounts":             {nil, perp.Fields{"accounts": []chain.Address{{}, account}}, "accounts", account.Hash()},
		"an account as a word": {nil, perp.Fields{"account_": account.Hash()}, "account_", account.Hash()},
		"a market":             {nil, perp.Fields{"toMarket": market}, "toMarket", market.Hash()},
		"a market's token":     {nil, perp.Fields{"marketToken": market}, "marketToken", market.Hash()},
		"an account in a market": {nil, perp.Fields{"market": market, "trader": account}, "market",
			account.Hash()},
		"an order of an account": {nil, perp.Fields{"account": account, "orderKey": other}, "account", account.Hash()},
		"a known order":          {nil, perp.Fields{"key": key}, "key", account.Hash()},
		"a known order in a market": {nil, perp.Fields{"orderKey": key, "market": market}, "market",
			account.Hash()},
		"nobody's position":       {nil, perp.Fields{"positionKey": other}, "positionKey", other},
		"nobody's in a market":    {nil, perp.Fields{"orderKey": other, "market": market}, "market", market.Hash()},
		"an account that is zero": {nil, perp.Fields{"account": chain.Address{}}, "account", nobody},
		"no position at all":      {nil, perp.Fields{"positions": []chain.Hash{}}, "positions", nobody},
	} {
		t.Run(name, func(t *testing.T) {
			l := gmxtest.Log(emitter, "Never Heard Of", test.topics, test.items)
			if _, err := NewDecoder(emitter).Transaction(transaction(l), 1); test.item == "" && err != nil {
				t.Errorf("it stops: %v", err)
			} else if unknown, is := errors.AsType[*UnknownEventError](err); test.item != "" &&
				(!is || unknown.Item != test.item) {
				t.Errorf("got %v, want it to stop for %s", err, test.item)
			}
			if called, is := NewDecoder(emitter).Unknown(l); is != (test.item == "") ||
				is && called != "Never Heard Of" {
				t.Errorf("as unknown and passed over it is called %q, %v", called, is)
			}
			r := NewRouter(10)
			r.Learn(key, account)
			r.Learn(other, chain.Address{}) // looked up: nobody's
			routes, err := r.Route(transaction(l))
			if err != nil || routes[0] != test.route {
				t.Errorf("it goes to %v, %v; want %s", routes, err, test.route)
			}
			if !Everywhere(l) {
				t.Error("it does not go to every partition: a build that knows it could not tell where it belongs")
			}
		})
	}
}

// What names an order that nobody has heard of is looked up before it is routed.
func TestOwnersOfUnknownEventsAreLookedUp(t *testing.T) {
	l := gmxtest.Log(emitter, "OrderLaunched", nil, perp.Fields{"orderKey": chain.Hash{9}})
	_, err := NewRouter(1).Route(transaction(l))
	if unknown, is := errors.AsType[*UnknownOwnerError](err); !is || unknown.Key != (chain.Hash{9}) {
		t.Errorf("got %v", err)
	}
}

// What the operator calls harmless neither stops nor is named; what this build knows it reads all the same.
func TestIgnoredNames(t *testing.T) {
	d := Events{IgnoreEvents: []string{"OrderLaunched", "OrderCreated"}}.Decoder()
	for range 2 {
		l := gmxtest.Log(emitter, "OrderLaunched", nil, perp.Fields{"account": chain.Address{1}})
		if _, err := d.Transaction(transaction(l), 1); err != nil {
			t.Error(err)
		}
		if name, is := d.Unknown(l); is {
			t.Errorf("%s is told of", name)
		}
		events, err := d.Transaction(transaction(event("OrderCreated", nil)), 1)
		if err != nil || len(events) != 1 {
			t.Errorf("what is known came to %v, %v", events, err)
		}
		d = d.For(3) // each partition's decoder knows the names too
	}
}

// Who keeps no rows passes over whatever has no name here, also where its items cannot be read.
func TestPassingDecoder(t *testing.T) {
	stop := gmxtest.Log(emitter, "OrderLaunched", nil, perp.Fields{"account": chain.Address{1}})
	torn := gmxtest.Log(emitter, "OrderTorn", nil, nil)
	torn.Data = append(torn.Data, 1)
	logs := transaction(stop, torn, event("OrderExecuted", nil))
	if events, err := NewDecoder(emitter).Passing().Transaction(logs, 1); err != nil || len(events) != 1 {
		t.Errorf("got %v, %v", events, err)
	}
	if _, err := NewDecoder(emitter).Transaction(transaction(torn), 1); err == nil {
		t.Error("an unknown event that cannot be read stops nobody who keeps rows")
	}
}

// A partition whose log a build did not understand when it was written makes the same rows of it, once a later build
// does, as if that had always known it; no other makes any, and parameters are in all.
func TestEveryEventIsFoundWhereItBelongs(t *testing.T) {
	order := chain.Hash{0x0d}
	for _, e := range gmxtest.Events() {
		if !slices.Contains(eventNames(true), e.Name) {
			continue
		}
		given := perp.Fields{}
		if _, has := e.Items["trader"]; has {
			given["trader"] = gmxtest.Account
		}
		for _, name := range []string{"key", "orderKey"} {
			if _, has := e.Items[name]; has {
				given[name] = order
			}
		}
		l := e.Log(emitter, given)
		before := transaction(event("OrderCreated", perp.Fields{"key": order}), l)
		known, err := NewRouter(1).Route(before)
		if err != nil {
			t.Fatal(err)
		}
		strange := l // the same under a name that nobody knows: so it was routed
		strange.Topics = slices.Clone(l.Topics)
		strange.Topics[1] = chain.Keccak256([]byte("X"))
		strange.Data = gmxtest.Data(emitter, "X", e.Fields(given))
		unknown, err := NewRouter(1).Route(transaction(before[0], strange))
		if err != nil {
			t.Fatalf("%s, not known: %v", e.Name, err)
		}
		at := func(key chain.Hash) func(chain.Hash) bool {
			return func(k chain.Hash) bool { return k == key }
		}
		if !Concerns(l, unknown[1], at(known[1])) {
			t.Errorf("%s, routed to %s while it was unknown, is not found by %s", e.Name, unknown[1], known[1])
		}
		if elsewhere := Concerns(l, unknown[1], at(chain.Hash{0xff})); elsewhere != IsParameter(l) {
			t.Errorf("%s is found elsewhere: %v", e.Name, elsewhere)
		}
	}
}

func FuzzTouchedBy(f *testing.F) {
	for _, e := range gmxtest.Events() {
		f.Add(e.Log(emitter, nil).Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := indexItems(data, nil)
		if err != nil {
			return
		}
		touched := touchedBy(data, items)
		if touched.item == "" && touched != (touched0) {
			t.Errorf("nothing is touched, and %+v", touched)
		}
		l := chain.Log{Address: emitter, Topics: []chain.Hash{eventLogTopics[0], {}}, Data: data}
		if name, err := eventName(data); err == nil {
			l.Topics[1] = chain.Keccak256(name)
		}
		if _, known := eventKinds[l.Topics[1]]; known {
			return
		}
		_, stops := NewDecoder(emitter).Transaction(transaction(l), 1)
		if (stops != nil) != (touched.item != "") {
			t.Errorf("%+v is touched, and the decoder says %v", touched, stops)
		}
	})
}

var touched0 touched

// Every documented event is decoded into something or known to carry no state; none is unknown, none fails.
func TestEveryDocumentedEventIsKnown(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range gmxtest.Events() {
		seen[e.Name] = true
		events, err := NewDecoder(emitter).Transaction(whole(e.Log(emitter, nil)), 1)
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		ignored := slices.Contains(eventNames(false), e.Name)
		if ignored != (len(events) == 0) {
			t.Errorf("%s: ignored %v, events %v", e.Name, ignored, events)
		}
	}
	for _, name := range eventNames(true) {
		if !seen[name] {
			t.Errorf("%s is handled, but pkg/gmx/gmxtest/events.txt does not say what it has", name)
		}
	}
}

// The names the interface documents, with the hashes its own file gives, are exactly those this package knows by a
// list.
func TestEventNameHashes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "reference", "gmx", "event_name_hashes.json"))
	if err != nil {
		t.Skip("no event_name_hashes.json beside this repository")
	}
	var hashes map[string]chain.Hash
	if err := json.Unmarshal(text, &hashes); err != nil {
		t.Fatal(err)
	}
	for name, hash := range hashes {
		if k, known := eventKinds[hash]; !known || k.name != name {
			t.Errorf("%s (%s) is not known", name, hash)
		}
	}
	for _, name := range append(eventNames(true), eventNames(false)...) {
		sinceV22c := name == "SetStaticPriceForToken"
		if _, documented := hashes[name]; !documented && !sinceV22c && !isTimelockAction(name) {
			t.Errorf("%s is known, but not in event_name_hashes.json: add it there", name)
		}
	}
}

// isTimelockAction reports whether a name is that of an event which the contracts name after an action.
func isTimelockAction(name string) bool {
	return strings.HasPrefix(name, "Signal") || name == "IncreaseTimelockDelay" || name == "RevokeRole"
}

func TestUnknownEvent(t *testing.T) {
	for _, l := range []chain.Log{
		gmxtest.Log(emitter, "OrderLaunched", nil, perp.Fields{"key": chain.Hash{1}}),
		{Address: emitter, Topics: []chain.Hash{{0xdd}, {0xf2}}},
		{Address: emitter},
	} {
		var unknown *UnknownEventError
		_, err := NewDecoder(emitter).Transaction(transaction(l), 1)
		if !errors.As(err, &unknown) || unknown.Block != 7 || unknown.Index != 10 {
			t.Errorf("got %v", err)
		}
	}
}

// Events that carry no state may have any shape; an unknown event is refused by name.
func TestShapeOfIgnoredEventsIsFree(t *testing.T) {
	for _, name := range eventNames(false) {
		strange := gmxtest.Log(emitter, name, []chain.Hash{{1}, {2}}, perp.Fields{"new": []string{"x"}})
		strange.Data = append(strange.Data, 1, 2, 3)
		if events, err := NewDecoder(emitter).Transaction(transaction(strange), 1); err != nil || len(events) > 0 {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
}

// eventNames lists the events that change state, or those that are known and change none.
func eventNames(handled bool) (names []string) {
	for _, k := range eventKinds {
		if (k.decode != nil) == handled {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return names
}
