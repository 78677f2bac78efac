package txmanager

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/headtrack"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

const (
	// marketDepth is how many of the newest blocks are looked at.
	marketDepth = 20
	// marketFresh is for how many blocks an answer is used where no request runs in the background, and how often that
	// is done.
	marketFresh = 4
	// marketOld is for how many blocks an answer is used while a request runs in the background.
	marketOld = 40
)

// market is what others pay, as several endpoints say. It is asked for in the background, so that no claim waits for it
// once it is known. It is safe for concurrent use.
type market struct {
	node   Node
	heads  *headtrack.Tracker
	limits Limits
	log    zerolog.Logger

	followed atomic.Bool

	mu    sync.Mutex
	known *txm.Market
	at    uint64 // the head it was asked at
}

// follow keeps what is known fresh until ctx ends.
func (m *market) follow(ctx context.Context) error {
	m.followed.Store(true)
	for {
		head := m.heads.Next()
		if _, fresh := m.have(marketFresh); !fresh && m.heads.Number() > 0 {
			if _, err := m.ask(ctx); err != nil && ctx.Err() == nil {
				m.log.Warn().Err(err).Msg("what others pay is not known anew")
			}
		}
		select {
		case <-head:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// have returns what is known, and whether it is from the last so many blocks.
func (m *market) have(blocks uint64) (known *txm.Market, fresh bool) {
	head := m.heads.Number()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known, m.known != nil && head >= m.at && head < m.at+blocks
}

// now returns what others pay. Nodes that keep no history of fees leave their suggestions; where none answers at all
// what was known before stays, and it is an error only if nothing was.
func (m *market) now(ctx context.Context) (txm.Market, error) {
	blocks := uint64(marketFresh)
	if m.followed.Load() {
		blocks = marketOld
	}
	known, fresh := m.have(blocks)
	if fresh {
		return *known, nil
	}
	asked, err := m.ask(ctx)
	if err != nil && known != nil {
		return *known, nil
	}
	return asked, err
}

func (m *market) ask(ctx context.Context) (txm.Market, error) {
	head := m.heads.Number()
	suggested, err := m.node.GasPrice(ctx)
	if err != nil {
		return txm.Market{}, err
	}
	asked := txm.Market{Suggested: suggested, Paid: m.paid(ctx)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.at = &asked, head
	return asked, nil
}

// paid asks once for all lanes.
func (m *market) paid(ctx context.Context) map[job.Lane][]uint64 {
	lanes := []job.Lane{job.LiquidationLane, job.OrderLane, job.MaintenanceLane}
	policy := m.limits.Fee()
	var shares []uint64
	for _, l := range lanes {
		shares = append(shares, policy.Of(l).Percentile)
	}
	slices.Sort(shares)
	shares = slices.Compact(shares)
	tips, err := m.node.Tips(ctx, marketDepth, shares)
	if err != nil {
		return nil
	}
	paid := map[job.Lane][]uint64{}
	for _, block := range tips {
		for _, l := range lanes {
			at, _ := slices.BinarySearch(shares, policy.Of(l).Percentile)
			paid[l] = append(paid[l], block[at])
		}
	}
	return paid
}
