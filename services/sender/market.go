package sender

import (
	"context"
	"slices"
	"sync"

	"perpkeeper/pkg/txm"
)

const (
	// marketDepth is how many of the newest blocks are looked at.
	marketDepth = 20
	// marketFresh is for how many blocks an answer is used.
	marketFresh = 4
)

// market is what others pay, asked of the node every few blocks at most. It is safe for concurrent use.
type market struct {
	node    pricer
	horizon *horizon
	policy  txm.Policy

	mu    sync.Mutex
	known *txm.Market
	at    uint64 // the head it was asked at
}

// pricer knows what transactions are paid.
type pricer interface {
	GasPrice(ctx context.Context) (uint64, error)
	Tips(ctx context.Context, blocks int, shares []uint64) ([][]uint64, error)
}

// now returns what others pay. A node that keeps no history of fees leaves its suggestion; one that does not answer at all leaves what was known before,
// and is an error only if nothing was.
func (m *market) now(ctx context.Context) (txm.Market, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head, _ := m.horizon.newest()
	if m.known != nil && head.Number >= m.at && head.Number < m.at+marketFresh {
		return *m.known, nil
	}
	suggested, err := m.node.GasPrice(ctx)
	switch {
	case err == nil:
		m.known, m.at = &txm.Market{Suggested: suggested, Paid: m.paid(ctx)}, head.Number
	case m.known == nil:
		return txm.Market{}, err
	}
	return *m.known, nil
}

// paid asks once for all lanes.
func (m *market) paid(ctx context.Context) map[txm.Lane][]uint64 {
	lanes := []txm.Lane{txm.LiquidationLane, txm.OrderLane, txm.MaintenanceLane}
	var shares []uint64
	for _, l := range lanes {
		shares = append(shares, m.policy.Of(l).Percentile)
	}
	slices.Sort(shares)
	shares = slices.Compact(shares)
	tips, err := m.node.Tips(ctx, marketDepth, shares)
	if err != nil {
		return nil
	}
	paid := map[txm.Lane][]uint64{}
	for _, block := range tips {
		for _, l := range lanes {
			at, _ := slices.BinarySearch(shares, m.policy.Of(l).Percentile)
			paid[l] = append(paid[l], block[at])
		}
	}
	return paid
}
