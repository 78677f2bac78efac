package planner

import (
	"testing"

	"perpkeeper/pkg/chain"
)

// PIPE-9: a job is laid to the report that made it due, and one that the state made due to none.
func TestWhatMadeAJobDue(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050))
	made := func() (ms uint64) {
		if len(d.jobs(t)) == 0 {
			t.Fatal("nothing is due")
		}
		r, _ := d.triggers.report(ethMarket.MarketToken)
		return r.TimeMs
	}
	if ms := made(); ms != 0 {
		t.Errorf("the first pass lays its jobs to the report of %d", ms)
	}
	d.report(eth, dollarsPerEther(4490), nowMs+300)
	if ms := made(); ms != nowMs+300 {
		t.Errorf("after a report of the index token: %d", ms)
	}
	d.book.apply(d.changes(long(bob, 1010))) // the state, after that report was judged with
	if ms := made(); ms != 0 {
		t.Errorf("after a change of the state: %d", ms)
	}
	d.report(usdc, chain.Pow10(24), nowMs+400)
	d.report(eth, dollarsPerEther(4480), nowMs+350)
	if ms := made(); ms != nowMs+400 {
		t.Errorf("after reports of both tokens: %d", ms)
	}
}
