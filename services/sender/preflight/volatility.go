package preflight

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/liquidation"
	"perpkeeper/pkg/perp"
	"sync"
	"time"
)

// volatility follows the prices of all tokens by the reports that this sender reads anyway, under the planner's own
// rule. It is safe for concurrent use.
type volatility struct {
	mu    sync.Mutex
	modes *liquidation.Modes
	now   uint64 // time (ms) of the newest report
}

func newVolatility(window time.Duration) *volatility {
	return &volatility{modes: liquidation.NewModes(window)}
}

func (v *volatility) observe(token chain.Address, price perp.Uint, atMs uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.modes.Observe(token, price, atMs)
	v.now = max(v.now, atMs)
}

// mode is how nervous the markets are as of the newest report.
func (v *volatility) mode() liquidation.Mode {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.modes.Mode(v.now)
}
