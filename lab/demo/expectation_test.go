package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/pkg/tier/execution/ledger"
)

// executed is a market order that a tier executed in a block, at an age.
func executed(tier int, block uint64, age time.Duration) ledger.Row {
	return ledger.Row{
		Kind: job.Order, State: ledger.Done, Result: execution.Executed, BornMs: 1, AgeMs: uint64(age.Milliseconds()),
		AgeBy:  ledger.ByRequest,
		Winner: &ledger.Tx{Tier: tier, Block: block, TimeMs: block * 1000, Gas: 100},
	}
}

// twice is an order for which another transaction came too late.
func twice(r ledger.Row) ledger.Row {
	r.Losers = append(r.Losers, ledger.Loser{Tx: ledger.Tx{Tier: 2, Gas: 40}, Late: true, Reverted: true})
	return r
}

// liquidatedThenTried is a position that the Master has liquidated and a tier has called a liquidation for afterwards.
func liquidatedThenTried(tier int) ledger.Row {
	r := executed(1, 2, 0)
	r.Kind = job.Liquidation
	r.Losers = []ledger.Loser{{Tx: ledger.Tx{Tier: tier, Gas: 40}, Late: true, Reverted: true}}
	return r
}

func TestExpectation(t *testing.T) {
	master := Expectation{By: []int{1}, P99: 3 * time.Second}
	withdrawn := twice(ledger.Row{Kind: job.Order, State: ledger.Withdrawn})
	back := Expectation{By: []int{1, 2}, Heir: 1, Oldest: 40 * time.Second}
	for _, c := range []struct {
		name   string
		expect Expectation
		rows   []ledger.Row
		wrong  []string // every part of the answer; none = as expected
	}{
		{"as expected", master, []ledger.Row{executed(1, 1, time.Second), executed(1, 2, 3*time.Second)}, nil},
		{"nothing", master, nil, []string{"nothing was executed"}},
		{"nothing, and nothing expected", Expectation{}, nil, nil},
		{"something, and nothing expected", Expectation{}, []ledger.Row{executed(1, 1, 0)},
			[]string{"Master executed 1 jobs"}},
		{"somebody else", master, []ledger.Row{executed(1, 1, 0), executed(2, 2, 0), executed(0, 3, 0)},
			[]string{"Backup-1 executed 1", "others executed 1"}},
		{"late", master, []ledger.Row{executed(1, 1, 3001*time.Millisecond)}, []string{"99 of 100", "3.001s"}},
		{"twice", master, []ledger.Row{twice(executed(1, 1, 0))},
			[]string{"1 transactions came when their job was done, 0 may"}},
		{"twice, which may be", Expectation{By: []int{1}, Duplicates: 1}, []ledger.Row{twice(executed(1, 1, 0))}, nil},
		{"a keeper liquidates twice", master, []ledger.Row{executed(1, 1, 0), liquidatedThenTried(1)},
			[]string{"1 transactions came when their job was done"}},
		{"two keepers liquidate", master, []ledger.Row{executed(1, 1, 0), liquidatedThenTried(2)},
			[]string{"1 transactions came when their job was done"}},
		{"after its owner took it back", master, []ledger.Row{executed(1, 1, 0), withdrawn}, nil},
		{"left over", master, []ledger.Row{executed(1, 1, 0), {Kind: job.Deposit, State: ledger.Waiting, BornMs: 1}},
			[]string{"1 requests were executed by nobody"}},
		{"a trigger order waits", master, []ledger.Row{executed(1, 1, 0), {Kind: job.Order, State: ledger.Waiting}},
			nil},
		{"the heir takes over", back, []ledger.Row{executed(2, 1, 0), executed(1, 5, 0), executed(2, 25, 0),
			executed(1, 90, 0)}, nil},
		{"the heir does not come", back, []ledger.Row{executed(2, 1, 0)}, []string{"Master executed nothing"}},
		{"the heir does not keep it", back, []ledger.Row{executed(1, 5, 0), executed(2, 26, 0)},
			[]string{"others executed 1 jobs more than 20s after Master"}},
		{"one was too old", back, []ledger.Row{executed(1, 5, 41*time.Second)},
			[]string{"the last request was executed at an age of 41s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.expect.Check(c.rows)
			if (err == nil) != (len(c.wrong) == 0) {
				t.Fatalf("%v", err)
			}
			for _, part := range c.wrong {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

// A job belongs to the act in which it was executed, and what nobody executed to the last one.
func TestDivide(t *testing.T) {
	rows := []ledger.Row{executed(1, 10, 0), executed(1, 19, 0), executed(2, 20, 0), executed(2, 31, 0),
		{State: ledger.Waiting, BornMs: 1}}
	scenes := divide([]Scene{{From: 10}, {From: 20}}, 30, rows)
	if got := scenes[0]; got.To != 19 || len(got.Rows) != 2 {
		t.Errorf("the first act ends at %d and has %d rows", got.To, len(got.Rows))
	}
	if got := scenes[1]; got.To != 30 || len(got.Rows) != 2 || got.Rows[0].Winner.Tier != 2 ||
		got.Rows[1].State != ledger.Waiting {
		t.Errorf("the second act ends at %d and has %+v", got.To, got.Rows)
	}
}

// The demo fails for want of an order or a liquidation, for any keeper but the Master, and for a duplicate.
func TestVerdict(t *testing.T) {
	order, liquidation := executed(1, 1, 0), executed(1, 2, 0)
	liquidation.Kind, liquidation.Result = job.Liquidation, execution.Liquidated
	cancelled := order
	cancelled.Result = execution.Cancelled
	for _, c := range []struct {
		name string
		rows []ledger.Row
		good bool
	}{
		{"good", []ledger.Row{order, liquidation}, true},
		{"good, with something under way",
			[]ledger.Row{order, liquidation, {Kind: job.Order, State: ledger.Waiting, BornMs: 1}}, true},
		{"no liquidation", []ledger.Row{order}, false},
		{"no order", []ledger.Row{cancelled, liquidation}, false},
		{"a backup's", []ledger.Row{order, liquidation, executed(3, 3, 0)}, false},
		{"a duplicate", []ledger.Row{twice(order), liquidation}, false},
	} {
		if err := verdict(c.rows); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Every act is named, with who executed in it, and which act was not as expected.
func TestWriteScenes(t *testing.T) {
	var b strings.Builder
	scenes := []Scene{
		{Act: Act{Name: "normal", Expect: Expectation{By: []int{1}}},
			Rows: []ledger.Row{executed(1, 1, time.Second), executed(1, 2, time.Second)}},
		{Act: Act{Name: "Master down", Expect: Expectation{By: []int{2}}}, Rows: []ledger.Row{
			twice(executed(3, 3, 31*time.Second)), {Kind: job.Order, State: ledger.Waiting},
		}},
	}
	if err := WriteScenes(&b, scenes, 3); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"order 2 2", "order 2 200", "normal as expected", "Master down NOT AS EXPECTED", "Backup-2 executed 1 jobs",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, &b)
		}
	}
}

func TestKindsLine(t *testing.T) {
	all := job.Kinds()
	var left []string
	rows := []ledger.Row{{Kind: all[0], Winner: &ledger.Tx{}}, {Kind: all[1]}}
	for _, kind := range all[1:] {
		left = append(left, string(kind))
		rows = append(rows, ledger.Row{Kind: kind})
	}
	want := fmt.Sprintf("kinds of jobs executed: 1 of %d; nobody executed: %s", len(all), strings.Join(left, ", "))
	if got := kindsLine(rows); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, kind := range all {
		rows = append(rows, ledger.Row{Kind: kind, Winner: &ledger.Tx{}})
	}
	want = fmt.Sprintf("kinds of jobs executed: %d of %[1]d", len(all))
	if got := kindsLine(rows); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
