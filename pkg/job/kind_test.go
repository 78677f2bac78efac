package job

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Whoever adds a kind and forgets its descriptor is told here.
func TestEveryKindIsDescribed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "kind.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []Kind
	ast.Inspect(file, func(n ast.Node) bool {
		if v, is := n.(*ast.ValueSpec); is {
			if kind, is := v.Type.(*ast.Ident); is && kind.Name == "Kind" {
				if literal, is := v.Values[0].(*ast.BasicLit); is {
					name, _ := strconv.Unquote(literal.Value)
					declared = append(declared, Kind(name))
				}
			}
		}
		return true
	})
	for _, k := range perp.RequestKinds() {
		if !slices.Contains(declared, Kind(k)) {
			t.Errorf("no kind executes a request to %s", k)
		}
	}
	if len(declared) != len(Kinds()) {
		t.Errorf("declared are %v, described are %v", declared, Kinds())
	}
	for _, k := range declared {
		d, known := Describe(k)
		if !known || d.Lane == "" || d.Key == 0 || len(d.Classes) == 0 || !slices.IsSorted(d.Classes) {
			t.Errorf("%s is described as %+v, %t", k, d, known)
		}
	}
	if d, known := Describe("?"); known || Kind("?").Names() != 0 {
		t.Errorf("a kind that nobody knows: %+v", d)
	}
}

// Each kind that expires has one that cancels it, of the least urgent lane and class, and with the same need: whatever
// ends the one ends the other.
func TestEveryCancelIsDescribed(t *testing.T) {
	if len(Cancels()) != 6 || Cancels()[0] != "cancelOrder" {
		t.Errorf("cancels are %v", Cancels())
	}
	key := chain.Hash{1}
	for _, cancel := range Cancels() {
		of, is := cancel.Cancels()
		back, has := of.Cancel()
		d, known := Describe(cancel)
		if !is || !has || back != cancel || !known || d.Lane != CleanupLane || cancel.Lane() != CleanupLane ||
			d.Key != of.Names() || !slices.Equal(d.Classes, []Class{ClassCleanup}) {
			t.Errorf("%s cancels %s, %t; described as %+v, %t", cancel, of, is, d, known)
		}
		if NeedOf(cancel, key, false) != NeedOf(of, key, false) {
			t.Errorf("%s and %s are two needs", cancel, of)
		}
		if _, has := cancel.Cancel(); has || slices.Contains(Kinds(), cancel) {
			t.Errorf("%s is cancelled itself, or executes something", cancel)
		}
	}
	for _, k := range []Kind{Liquidation, Adl, AdlState, GlvShift, "?", "cancel", "cancelLiquidation", "cancelorder",
		""} {
		if of, is := k.Cancels(); is {
			t.Errorf("%q cancels %q", k, of)
		}
		if c, has := k.Cancel(); has {
			t.Errorf("%q is cancelled by %q", k, c)
		}
	}
	if id := CancelID(Job{ID: OrderID(key, 3), Kind: Order}); id != "cancelOrder:"+key.Hex()+":3" {
		t.Error(id)
	}
	if id := CancelID(Job{ID: RequestID(Deposit, key), Kind: Deposit}); id != "cancelDeposit:"+key.Hex() {
		t.Error(id)
	}
}

// Whoever takes the requests cancels them.
func TestCleanupGoesWithTheMaintenance(t *testing.T) {
	one, two := chain.Address{1}, chain.Address{2}
	s := NewSigners([]chain.Address{one, two}, map[chain.Address][]Lane{one: {LiquidationLane, OrderLane},
		two: {MaintenanceLane}})
	if got := s.Route("cancelOrder", chain.Address{9}); got != two || len(s.Unserved()) != 0 {
		t.Errorf("%s; unserved %v", got, s.Unserved())
	}
}
