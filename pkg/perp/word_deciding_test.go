package perp

import (
	"testing"

	"perpkeeper/pkg/chain"
)

// Every parameter that a verdict asks for is among those that are compared every few seconds: what is missing would be
// an hour old.
func TestDecidingWordsAreThoseOfVerdicts(t *testing.T) {
	c, p := openMarket()
	rows, is := c.Rows.(rowMap)
	if !is {
		t.Fatal("the fixture's rows are of another kind")
	}
	asked := map[chain.Hash]bool{}
	for _, change := range verdictPaths {
		change(rows)
		seen := c
		seen.Rows = recorder{rows, asked}
		if _, err := NewView(seen).Judge(p); err != nil {
			t.Fatal(err)
		}
	}
	m, _ := rows.Get(RowKey{Markets, market.Hash()}).(Market)
	deciding, listed := map[chain.Hash]bool{}, map[chain.Hash]bool{}
	for _, w := range DecidingWords([]Market{m}) {
		deciding[w.Key] = true
	}
	for _, w := range Words([]Market{m}) {
		listed[w.Key] = true
		if asked[w.Key] && !deciding[w.Key] {
			t.Errorf("a verdict reads %s, and it is compared once an hour", w.Name)
		}
	}
	for key := range deciding {
		if !listed[key] {
			t.Errorf("%s is compared every few seconds, and by no audit", key)
		}
	}
	if len(deciding) < 30 {
		t.Errorf("only %d parameters decide: the test sees too little", len(deciding))
	}
}
