package preflight

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/due"
)

// wordsFresh is for how long the exchange's words on gas are used before they are read again. They change by
// governance, and what changed meanwhile the simulated call shows.
const wordsFresh = 10 * time.Second

// gasLimits gives transactions their gas limits, by the exchange's own words as the state has them. It is safe for concurrent use.
type gasLimits struct {
	state gasState
	clock func() time.Time

	mu       sync.Mutex
	words    gmx.GasWords
	glvs     due.Glvs
	read     time.Time       // when the words were last read; zero before the first time
	reported map[string]bool // jobs of which people were told that no limit is enough
}

// gasState is what gas limits are computed from.
type gasState interface {
	Parameters(ctx context.Context, keys []chain.Hash) ([]perp.Parameter, error)
	GlvMarkets(ctx context.Context) ([]perp.MarketValue, error)
}

func newGasLimits(state gasState, clock func() time.Time) *gasLimits {
	return &gasLimits{state: state, clock: clock, words: gmx.DefaultGasWords()}
}

// refresh reads the words again if it is time. It is called while no job waits for it.
func (g *gasLimits) refresh(ctx context.Context) error {
	now := g.clock()
	g.mu.Lock()
	fresh := !g.read.IsZero() && now.Sub(g.read) < wordsFresh
	g.mu.Unlock()
	if fresh {
		return nil
	}
	parameters, err := g.state.Parameters(ctx, gmx.GasWordKeys())
	if err != nil {
		return fmt.Errorf("reading the exchange's words on gas: %w", err)
	}
	markets, err := g.state.GlvMarkets(ctx)
	if err != nil {
		return fmt.Errorf("reading the markets of GLVs: %w", err)
	}
	words, glvs := gmx.GasWordsOf(parameters), due.GlvsOf(slices.Values(markets))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.words, g.glvs, g.read = words, glvs, now
	return nil
}

// limit is the gas limit of a job's transaction. An attempt that follows failed ones gets half as much again for each:
// whatever they failed for, the limit is not the cause for ever.
func (g *gasLimits) limit(j job.Job, work gmx.Work, failed uint32) uint64 {
	work.Prices = len(j.Tokens)
	g.mu.Lock()
	limit := g.words.Limit(work)
	g.mu.Unlock()
	for range min(failed, enoughRaises) {
		limit = min(limit+limit/2, gmx.MaxGas)
	}
	return limit
}

// enoughRaises by half make the most of any limit.
const enoughRaises = 20

// short notes that no gas limit is enough for a job, and reports whether that is news.
func (g *gasLimits) short(id string) (first bool) {
	const enough = 1000
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reported == nil || len(g.reported) > enough {
		g.reported = map[string]bool{}
	}
	first, g.reported[id] = !g.reported[id], true
	return first
}

func (g *gasLimits) markets(glv chain.Address) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.glvs[glv])
}
