package sender

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/wire"
)

// adoption works, in worker-queue mode, the signers whose process is gone, until the group has given their partitions
// to somebody: it waits for a silent member for longer than a signer may rest. It is for one goroutine.
type adoption struct {
	s    *Sender
	stop func() // returns when nothing is worked any more
}

// begin ends what was adopted, and looks after the signers of all but this member's own partitions.
func (a *adoption) begin(ctx context.Context, own []int) {
	a.stop()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, key := range a.s.keys {
		p := wire.SignerPartition(key.Address(), a.s.cfg.Keeper.JobPartitions)
		if a.s.cfg.Sender.Mode == workerQueue && !slices.Contains(own, p) {
			running.Go(func() { a.await(ctx, key, p) })
		}
	}
	a.stop = func() { cancel(); running.Wait() }
}

// await waits until the signer's holder is gone, and works the signer and its partition then, until ctx ends.
func (a *adoption) await(ctx context.Context, key signer.Signer, partition int) {
	for retry.Sleep(ctx, lease.Rest(a.s.cfg.Sender.LeaseTTL)) {
		if gone, err := a.s.session.Gone(ctx, key.Address()); err != nil || !gone {
			continue // a database that is away is told by others
		}
		a.s.log.Warn().Str("signer", key.Address().Hex()).Int("partition", partition).
			Msg("its sender is gone: worked here until the group has noticed")
		if err := a.work(ctx, key, partition); ctx.Err() == nil {
			a.s.log.Warn().Err(err).Int("partition", partition).Msg("it is not worked here any more")
		}
	}
}

// work works a signer and its partition until ctx ends, but not for much longer than the group needs to notice that a
// member is gone: its holder may live, and have lost its session alone, or the group may have given the partition to
// somebody while this member does not reach it. They get the signer then.
func (a *adoption) work(ctx context.Context, key signer.Signer, partition int) error {
	ctx, cancel := context.WithTimeout(ctx, 3*a.s.cfg.Kafka.SessionTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.s.manager.Work(ctx, key) })
	group.Go(func() error { return a.s.intake(ctx, partition, func(int64) {}) })
	return group.Wait()
}
