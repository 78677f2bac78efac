package preflight

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txmanager"
)

// audits knows of which markets every word that rules read was compared with the chain. Until then a verdict may rest
// on a word that is not what the chain has, and nothing is sent. That it was done once stands in the state, also over
// restarts; how long ago, the scanner watches. It is safe for concurrent use.
type audits struct {
	state looker

	mu         sync.Mutex
	generation uint32 // of the state that passed is of
	passed     map[chain.Address]bool
}

// ask lets a job go on if every market that concerns it was audited: its own, and those it swaps in.
func (a *audits) ask(ctx context.Context, j job.Job, others []chain.Address) (txmanager.Verdict, error) {
	for _, market := range slices.Concat([]chain.Address{j.Market}, others) {
		if market.IsZero() {
			continue
		}
		passed, err := a.has(ctx, market, j.Evidence.Generation)
		if err != nil {
			return txmanager.Verdict{}, fmt.Errorf("asking whether the words of market %s were audited: %w", market,
				err)
		}
		if !passed {
			return txmanager.Wait(fmt.Sprintf("the words of market %s have not been compared with the chain yet (the "+
				"scanner's readiness says what is in the way)", market)), nil
		}
	}
	return txmanager.Verdict{}, nil
}

// has reports whether a market was audited. What once was is not asked for again: only a reorg beneath the final block
// would take it back.
func (a *audits) has(ctx context.Context, market chain.Address, generation uint32) (bool, error) {
	if a.known(market, generation) {
		return true, nil
	}
	key := perp.AuditKey(market).Key
	read, err := a.state.Look(ctx, pg.Keys{Values: []chain.Hash{key}})
	found := read.Values[key]
	// The words stand in earlier blocks, which every partition has reached where the watermark is not below the
	// audit's.
	if err != nil || !found.Known || found.At.Number < found.Row.Stamp.Block {
		return false, err
	}
	a.note(market, generation)
	return true, nil
}

func (a *audits) known(market chain.Address, generation uint32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.generation == generation && a.passed[market]
}

func (a *audits) note(market chain.Address, generation uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.generation != generation || a.passed == nil {
		a.generation, a.passed = generation, map[chain.Address]bool{}
	}
	a.passed[market] = true
}
