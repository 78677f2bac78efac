package sender

import (
	"context"
	"slices"
	"sync"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// enqueued notes which jobs are stored.
type enqueued struct {
	txm.Store
	mu  sync.Mutex
	ids []string
}

func (e *enqueued) Enqueue(ctx context.Context, j job.Job) (txm.Admission, error) {
	e.mu.Lock()
	e.ids = append(e.ids, j.ID)
	e.mu.Unlock()
	return e.Store.Enqueue(ctx, j)
}

func (e *enqueued) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.ids)
}

// LIQ-19: planners say all that is due with every sweep. A sender that finds a backlog of that stores each job once,
// and the most urgent first, wherever they stand in it.
func TestBacklogOfSweepsIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	by, key := s.keeper(0)
	const jobs, sweeps = 20, 30
	var records []bus.Record
	record := func(j job.Job) {
		j.Tokens, j.Signer, j.DueSinceMs = []chain.Address{{0xde, 0xad}}, by, 1 // of a token that has no report
		r, err := wire.Encode(by[:], wire.Job{Job: s.found(j)[0]}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	for range sweeps {
		for i := range byte(jobs) {
			record(job.Job{ID: job.OrderID(chain.Hash{i}, 1), Kind: job.Order, Key: chain.Hash{i},
				Class: job.ClassTriggerOrder})
		}
	}
	urgent := job.LiquidationID(chain.Hash{0xff}, 1)
	record(job.Job{ID: urgent, Kind: job.Liquidation, Key: chain.Hash{0xff}, Class: job.ClassLiquidation})
	partition := wire.SignerPartition(by, s.cfg.Keeper.JobPartitions)
	if _, err := s.client.Producer(wire.JobTopic(s.cfg.Keeper.ChainID)).
		Produce(t.Context(), partition, records); err != nil {
		t.Fatal(err)
	}
	seen := &enqueued{}
	sn := s.sender([]secret.String{key}, func(sn *Sender) { seen.Store, sn.intents = sn.intents, seen })
	s.eventually("all are queued", func(ctx context.Context) bool {
		depth, err := sn.intents.Depth(ctx, by)
		return err == nil && depth == jobs+1
	})
	if got := seen.all(); len(got) != jobs+1 || got[0] != urgent {
		t.Errorf("%d jobs, %d times each, were stored by %d calls, the first of %s", jobs, sweeps, len(got), got[0])
	}
}
