package price

import "time"

// quiet lets one line of a kind through per period and counts the others.
type quiet struct {
	period time.Duration
	kinds  map[string]*hush
}

type hush struct {
	until      time.Time
	suppressed int
}

func newQuiet(period time.Duration) *quiet { return &quiet{period: period, kinds: map[string]*hush{}} }

// pass tells whether a line of a kind may be written now, and how many were suppressed before it.
func (q *quiet) pass(kind string, now time.Time) (suppressed int, ok bool) {
	h := q.kinds[kind]
	if h == nil {
		h = &hush{}
		q.kinds[kind] = h
	}
	if now.Before(h.until) {
		h.suppressed++
		return 0, false
	}
	suppressed, h.suppressed, h.until = h.suppressed, 0, now.Add(q.period)
	return suppressed, true
}
