package preflight

import (
	"context"
	"fmt"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// lags are by how many seconds the exchange's oracle takes a report to be older than it says: a word of its provider
// and token (ORACLE_TIMESTAMP_ADJUSTMENT). The exchange refuses what is older than a request, so reckoned. A word that
// is not known counts as zero. It is safe for concurrent use.
type lags struct {
	state gasState
	clock func() time.Time

	mu      sync.Mutex
	seconds map[chain.Hash]uint64 // by the word's key
	read    time.Time             // when the words were last read; zero before the first time
}

// lagKey is the key of the word that a report is subject to.
func lagKey(r price.Report) chain.Hash {
	return perp.DataStoreKey("ORACLE_TIMESTAMP_ADJUSTMENT", r.Provider.Hash(), r.Token.Hash())
}

// refresh reads the words of these reports again if it is time.
func (l *lags) refresh(ctx context.Context, reports []price.Report) error {
	now := l.clock()
	l.mu.Lock()
	fresh := !l.read.IsZero() && now.Sub(l.read) < wordsFresh
	l.mu.Unlock()
	if fresh || len(reports) == 0 {
		return nil
	}
	var keys []chain.Hash
	for _, r := range reports {
		keys = append(keys, lagKey(r))
	}
	parameters, err := l.state.Parameters(ctx, keys)
	if err != nil {
		return fmt.Errorf("reading by how much the oracle takes reports to be older: %w", err)
	}
	seconds := map[chain.Hash]uint64{}
	for _, p := range parameters {
		seconds[p.Key], _ = p.Uint().Uint64()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seconds, l.read = seconds, now
	return nil
}

// second is the second that the exchange takes a report to be of.
func (l *lags) second(r price.Report) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return r.Second() - min(r.Second(), l.seconds[lagKey(r)])
}

// atOrAfter is the chooser of the first report that the exchange takes to be of a second or later.
func (l *lags) atOrAfter(quotes *Quotes, second uint64) price.Chooser {
	return func(token chain.Address) (price.Report, bool) {
		for from := second; ; {
			r, known := quotes.AtOrAfter(from)(token)
			if !known || l.second(r) >= second {
				return r, known
			}
			from = r.Second() + 1
		}
	}
}
