package sender

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/signer"
)

// adoption works, in worker-queue mode, the signers whose process is gone, until the group has given their partitions
// to somebody: it waits for a silent member for longer than a signer may rest. It also works those that nobody holds,
// as whoever got their partition may not have their keys. It is for one goroutine.
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

// await waits until the signer's holder is gone, and works the signer and its partition then, until ctx ends. Where the
// group is at rest and nobody holds the signer, it is worked here until the group changes.
func (a *adoption) await(ctx context.Context, key signer.Signer, partition int) {
	free := time.Now() // since when nobody has been seen to hold it
	for retry.Sleep(ctx, lease.Rest(a.s.cfg.Sender.LeaseTTL)) {
		at, failed := a.s.session.Status(ctx, key.Address())
		if failed != nil || at.Left > 0 {
			free = time.Now()
		}
		if time.Since(free) >= a.s.cfg.Kafka.SessionTimeout {
			a.s.log.Warn().Str("signer", key.Address().Hex()).Int("partition", partition).
				Msg("nobody works it: it is worked here until the group changes")
			_ = a.s.manager.Work(ctx, key) // which ends with ctx alone
			return
		}
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
	group.Go(func() error { return a.s.intake(ctx, partition) })
	return group.Wait()
}
