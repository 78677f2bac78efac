package sender

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/headtrack"
	"perpkeeper/pkg/tier"
	"perpkeeper/services/sender/turns"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// nowMs is the chain's time in these tests.
const nowMs = 1_700_000_000_000

// alone has every turn.
func alone() *turns.Tracker {
	return turns.New(turns.Config{Tier: tier.DefaultConfig(), Head: headtrack.New(time.Now), Clock: time.Now,
		Metrics: turns.NewMetrics(prometheus.NewRegistry()), Log: zerolog.Nop()})
}

func horizonAt(ms uint64, arrived time.Time) *headtrack.Tracker {
	h := headtrack.New(time.Now)
	h.Set(chain.BlockRef{Number: 100, Hash: chain.Hash{1}, TimeMs: ms}, arrived)
	return h
}
