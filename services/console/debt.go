package console

import (
	"context"
	"time"

	"perpkeeper/pkg/retry"
)

// debtEvery is how often the monitor looks what positions did not cover, and debtWithin over what time back.
const (
	debtEvery  = 15 * time.Second
	debtWithin = time.Hour
)

// debts knows what closed positions did not cover within a time back from now, in whole USD.
type debts interface {
	BadDebtUSD(ctx context.Context, within time.Duration) (uint64, error)
}

// followDebt keeps the hour's bad debt in sight until ctx ends (LIQ-15). While the database is away the last figure
// stands.
func (m *monitor) followDebt(ctx context.Context) error {
	for {
		usd, err := m.debts.BadDebtUSD(ctx, debtWithin)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			m.log.Warn().Err(err).Msg("what positions did not cover is asked for again")
		default:
			m.owed.Store(usd)
		}
		if !retry.Sleep(ctx, debtEvery) {
			return context.Cause(ctx)
		}
	}
}

// debt is what was not covered within the hour, once each time it rises above what calls for actions, and 0 otherwise.
func (m *monitor) debt() uint64 {
	usd := m.owed.Load()
	if usd <= m.cfg.Emergency.BadDebt {
		m.debtReported = false
	}
	if m.debtReported {
		return 0
	}
	return usd
}
