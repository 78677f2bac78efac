package preflight

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// lags are by how many seconds the exchange's oracle takes a report to be older than it says: a word of its provider
// and token (ORACLE_TIMESTAMP_ADJUSTMENT). The exchange refuses what is older than a request, so reckoned. A word that
// is not known counts as zero. Beside them stands how old a report may be at all (MAX_ORACLE_PRICE_AGE). It is safe for
// concurrent use.
type lags struct {
	state gasState
	clock func() time.Time

	mu      sync.Mutex
	seconds map[chain.Hash]uint64 // by the word's key, of the age too
	read    time.Time             // when the words were last read; zero before the first time
}

// lagKey is the key of the word that a report is subject to.
func lagKey(r price.Report) chain.Hash {
	return perp.DataStoreKey("ORACLE_TIMESTAMP_ADJUSTMENT", r.Provider.Hash(), r.Token.Hash())
}

var mostAge = perp.DataStoreKey("MAX_ORACLE_PRICE_AGE")

// refresh reads the words of these reports again if it is time.
func (l *lags) refresh(ctx context.Context, reports []price.Report) error {
	now := l.clock()
	l.mu.Lock()
	fresh := !l.read.IsZero() && now.Sub(l.read) < wordsFresh
	l.mu.Unlock()
	if fresh || len(reports) == 0 {
		return nil
	}
	keys := []chain.Hash{mostAge}
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

// oldest is the oldest second, as the exchange takes it, of which a report is young enough for a transaction that is
// about to be sent, at a time (Unix ms) of the chain's clock.
func (l *lags) oldest(nowMs uint64) uint64 {
	const venueDefault = 300 // seconds
	l.mu.Lock()
	most, known := l.seconds[mostAge]
	l.mu.Unlock()
	if !known {
		most = venueDefault
	}
	return since(nowMs, most)
}

// since is the oldest second of which a report is no more than so many seconds old in the block that a transaction
// lands in that is about to be sent, at a time (Unix ms) of the chain's clock.
func since(nowMs, most uint64) uint64 {
	const spare = 5 // seconds, for the transaction's way into a block
	lands := nowMs/1000 + min(spare, most/2)
	return lands - min(lands, most)
}

// first is the chooser of the reports of a request: the first that the exchange takes to be of a second or later, and
// that is young enough for it at a time (Unix ms) of the chain's clock. What the exchange reads on the chain itself is
// of the block that the transaction lands in, and the price is the one that stands there then. So the newest report of
// such a token is taken, and none of another that is too far from that block to go with it.
func (l *lags) first(quotes *Quotes, tokens []chain.Address, second, nowMs uint64) price.Chooser {
	onChain := func(token chain.Address) bool {
		r, known := quotes.Latest(token)
		return known && r.OnChain()
	}
	oldest := max(second, l.oldest(nowMs))
	if slices.ContainsFunc(tokens, onChain) {
		oldest = max(oldest, since(nowMs, uint64(price.MaxSpread.Seconds())))
	}
	signed := l.atOrAfter(quotes, oldest)
	return func(token chain.Address) (price.Report, bool) {
		if onChain(token) {
			return quotes.Latest(token)
		}
		return signed(token)
	}
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
