package price

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
)

// MaxSpread is how far apart the reports of one transaction may be: the exchange's MAX_ORACLE_TIMESTAMP_RANGE.
const MaxSpread = 60 * time.Second

// Chooser picks the report of a token; Board.Latest is one.
type Chooser func(token chain.Address) (r Report, ok bool)

// AtOrAfter is the chooser of the first report at or after a second.
func (b *Board) AtOrAfter(second uint64) Chooser {
	return func(token chain.Address) (Report, bool) { return b.firstAtOrAfter(token, second) }
}

// missingError reports that there is no report of a token.
type missingError struct{ Token chain.Address }

func (e *missingError) Error() string { return fmt.Sprintf("no price report of %s", e.Token) }

// spreadError reports that reports are too far apart for one transaction.
type spreadError struct{ Oldest, Newest Report }

func (e *spreadError) Error() string {
	return fmt.Sprintf("price reports are %d s apart, at most %d are allowed: %s at second %d, %s at second %d",
		e.Newest.Second()-e.Oldest.Second(), int(MaxSpread.Seconds()), e.Oldest.Token, e.Oldest.Second(),
		e.Newest.Token, e.Newest.Second())
}

// Set returns the chosen report of each token, each token once, in the order in which they are first named. The reports
// fit one transaction; the error is a missingError or a spreadError otherwise. No tokens give an empty set.
func Set(tokens []chain.Address, choose Chooser) ([]Report, error) {
	var set []Report
	for _, token := range tokens {
		if slices.ContainsFunc(set, func(r Report) bool { return r.Token == token }) {
			continue
		}
		r, ok := choose(token)
		if !ok {
			return nil, &missingError{token}
		}
		set = append(set, r)
	}
	if len(set) == 0 {
		return nil, nil
	}
	oldest, newest := extremes(set)
	if newest.Second()-oldest.Second() > uint64(MaxSpread.Seconds()) {
		return nil, &spreadError{oldest, newest}
	}
	return set, nil
}

func extremes(set []Report) (oldest, newest Report) {
	byTime := func(a, b Report) int { return cmp.Compare(a.TimeMs, b.TimeMs) }
	return slices.MinFunc(set, byTime), slices.MaxFunc(set, byTime)
}
