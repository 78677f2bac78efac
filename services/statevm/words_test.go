package statevm

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Only a word of which an audit has found another value than the fold had is a difference, and it is told once.
func TestDifferencesAreFound(t *testing.T) {
	planted, right := chain.Hash{1}, chain.Hash{2}
	w := newWorkingSet(map[perp.RowKey]perp.Row{})
	said := perp.Parameter{Key: right, Value: chain.Hash{9}, Source: perp.FromEvent, Stamp: perp.Stamp{Block: 3}}
	w.Put(said)
	for _, p := range []perp.Parameter{
		{Key: planted, Value: chain.Hash{7}, Source: perp.FromCall, Stamp: perp.Stamp{Block: 5}},
		{Key: right, Value: chain.Hash{9}, Source: perp.FromCall, Stamp: perp.Stamp{Block: 5}},
		{Key: chain.Hash{3}, Source: perp.FromCall, Stamp: perp.Stamp{Block: 5}}, // absent is zero
	} {
		if err := w.apply(perp.ParameterAudited{Parameter: p, Name: "VIRTUAL_TOKEN_ID(0x01)"}); err != nil {
			t.Fatal(err)
		}
	}
	found := w.differing()
	if len(found) != 1 || found[0].audited.Parameter.Key != planted || !found[0].folded.IsZero() ||
		len(w.differing()) != 0 {
		t.Fatalf("found %+v", found)
	}
	if w.Get(said.RowKey()) != perp.Row(said) {
		t.Error("a row that is right was changed")
	}
}
