package price

import "time"

// logLimiter lets one log line of a kind through per period and counts the others.
type logLimiter struct {
	period time.Duration
	kinds  map[string]*logPeriod
}

type logPeriod struct {
	until      time.Time
	suppressed int
}

func newLogLimiter(period time.Duration) *logLimiter {
	return &logLimiter{period: period, kinds: map[string]*logPeriod{}}
}

// pass reports whether a line of a kind may be written now, and how many were suppressed before it.
func (q *logLimiter) pass(kind string, now time.Time) (suppressed int, ok bool) {
	h := q.kinds[kind]
	if h == nil {
		h = &logPeriod{}
		q.kinds[kind] = h
	}
	if now.Before(h.until) {
		h.suppressed++
		return 0, false
	}
	suppressed, h.suppressed, h.until = h.suppressed, 0, now.Add(q.period)
	return suppressed, true
}
