package txmanager

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txm"
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
// once it is known. What this keeper has offered is no market: one transaction that was raised in a jam would have all
// that follow begin there, and keep the price up for each other (NON-16). It is safe for concurrent use.
type market struct {
	node   Node
	heads  *headtrack.Tracker
	limits Limits
	log    zerolog.Logger

	followed atomic.Bool

	mu    sync.Mutex
	known *txm.Market
	at    uint64            // the head it was asked at
	ours  map[uint64]uint64 // at which head a price was last offered by a signer of ours
	taken map[uint64]uint64 // the newest block that took one of ours for a price
}

// offered notes a price of ours.
func (m *market) offered(price uint64) {
	head := m.heads.Number()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ours == nil {
		m.ours = map[uint64]uint64{}
	}
	m.ours[price] = head
}

// took notes that a block took one of ours for a price.
func (m *market) took(price, block uint64) {
	block = min(block, m.heads.Number()) // one endpoint's word
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken == nil {
		m.taken = map[uint64]uint64{}
	}
	m.taken[price] = max(m.taken[price], block)
}

// enough returns the newest block that shows that a lane's price is enough: it took one of ours for no more, and others
// pay no more, as far as is known. It is 0 where none does. What waits in spite of it waits behind our own. For what is
// no liquidation that holds of a liquidation's price too, see [txm.Policy.First].
func (m *market) enough(l job.Lane, price uint64) (block uint64) {
	policy := m.limits.Fee()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || policy.Asks(l, *m.known) > price {
		return 0
	}
	if l != job.LiquidationLane {
		price++
	}
	for paid, at := range m.taken {
		if paid <= price {
			block = max(block, at)
		}
	}
	return block
}

// isOurs reports whether a price is one that we have offered ourselves of late.
func (m *market) isOurs(price uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ours := m.ours[price]
	return ours
}

// forget drops the prices that blocks of the market no longer show.
func (m *market) forget() {
	head := m.heads.Number()
	m.mu.Lock()
	defer m.mu.Unlock()
	old := func(_, at uint64) bool { return head > at+marketOld }
	maps.DeleteFunc(m.ours, old)
	maps.DeleteFunc(m.taken, old)
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
	lanes, policy := job.Lanes(), m.limits.Fee()
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
	m.forget()
	paid := map[job.Lane][]uint64{}
	for _, block := range tips {
		for _, l := range lanes {
			at, _ := slices.BinarySearch(shares, policy.Of(l).Percentile)
			if !m.isOurs(block[at]) {
				paid[l] = append(paid[l], block[at])
			}
		}
	}
	return paid
}
