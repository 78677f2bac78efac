package turns

import (
	"context"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/tier/execution"
)

// Transactions knows what this keeper has ever signed, in whichever of its processes.
type Transactions interface {
	// Unsigned returns those of the hashes that are of no transaction of this keeper.
	Unsigned(ctx context.Context, hashes []chain.Hash) ([]chain.Hash, error)
}

// mostSuspects bounds what is kept of this tier's executions while the database is away.
const mostSuspects = 1000

// noteOwn keeps an execution by this tier's signers until it is known whether this keeper has signed it. What was
// executed before the past had been read is not looked at. The lock is held.
func (t *Tracker) noteOwn(e execution.Execution) {
	if t.readMs > 0 && t.keepers.Tier(e.Tx.From) == t.cfg.Tier.Priority && len(t.own) < mostSuspects {
		t.own = append(t.own, e.Tx)
	}
}

// FindOthers looks for executions by this keeper's signers that no process of it has signed: another keeper works with
// the same keys, such as two that both believe to be the Master. What could not be asked about is asked about the next
// time.
func (t *Tracker) FindOthers(ctx context.Context, of Transactions) error {
	t.mu.Lock()
	own := t.own
	t.own = nil
	t.mu.Unlock()
	if len(own) == 0 {
		return nil
	}
	var hashes []chain.Hash
	signers := map[chain.Hash]chain.Address{}
	for _, tx := range own {
		hashes = append(hashes, tx.Hash)
		signers[tx.Hash] = tx.From
	}
	external, err := of.Unsigned(ctx, hashes)
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.own = append(own, t.own...)
		return err
	}
	for _, hash := range external {
		t.cfg.Metrics.external.WithLabelValues(signers[hash].Hex()).Inc()
		t.cfg.Log.Error().Bool("critical", true).Str("signer", signers[hash].Hex()).Str("hash", hash.Hex()).
			Msg("a job was executed with a key of this keeper that this keeper has not used: another keeper works " +
				"with the same key (stop it, or give it keys of its own)")
	}
	return nil
}
