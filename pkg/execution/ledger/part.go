package ledger

import "perpkeeper/pkg/job"

// TotalsOf sums some rows by themselves: a part of what was booked.
func TotalsOf(rows []Row) Totals {
	t := Totals{kinds: map[job.Kind]*Sum{}}
	for _, r := range rows {
		t.add(r, r.Winner != nil)
	}
	return t
}
