package sender

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

// pause is how long a task that was told to wait is passed over.
const pause = 300 * time.Millisecond

// drain takes a signer's queued intents down the road, the most urgent first, one at a time (NON-9).
type drain struct {
	tenure  *lease.Tenure
	road    []stage
	queue   txm.Queue
	maxAge  time.Duration
	settled time.Duration
	metrics *Metrics
	log     zerolog.Logger
	ended   func()       // called when an intent has ended
	gate    func(string) // told why nothing can be sent; empty when something could

	asleep map[int64]time.Time // until when a task is passed over
}

// pass takes tasks until there is none left to take, or the gate is closed.
func (d *drain) pass(ctx context.Context) error {
	depth, err := d.queue.Depth(ctx, d.tenure.Fence().Signer)
	if err != nil {
		return err
	}
	d.metrics.queueDepth.WithLabelValues(d.tenure.Fence().Signer.Hex()).Set(float64(depth))
	for ctx.Err() == nil {
		head, err := d.queue.Head(ctx, d.tenure.Fence().Signer, d.sleeping())
		if err != nil || head == nil {
			return err
		}
		open, err := d.take(ctx, *head)
		if err != nil || !open {
			return err
		}
	}
	return nil
}

// sleeping lists the tasks to pass over, and wakes those whose time has come.
func (d *drain) sleeping() []int64 {
	var ids []int64
	for id, until := range d.asleep {
		if time.Now().Before(until) {
			ids = append(ids, id)
		} else {
			delete(d.asleep, id)
		}
	}
	return ids
}

// take leads one task as far as it gets. It returns false when no other task would get further.
func (d *drain) take(ctx context.Context, i txm.Intent) (open bool, err error) {
	t := &task{intent: i}
	for _, s := range d.road {
		v, err := s.run(ctx, t)
		if err != nil {
			d.sleep(i) // whatever it was, others may have better luck meanwhile
			return false, err
		}
		if v.kind != onward {
			return d.heed(ctx, s.name, i, v)
		}
	}
	d.gate("")
	return true, nil
}

func (d *drain) heed(ctx context.Context, stage string, i txm.Intent, v verdict) (open bool, err error) {
	if v.kind == closed {
		d.metrics.waits.WithLabelValues(stage).Inc()
		d.gate(v.reason)
		return false, nil
	}
	d.gate("")
	if v.kind == waiting {
		d.metrics.waits.WithLabelValues(stage).Inc()
		if time.Since(i.QueuedAt) < d.maxAge { // two clocks, but only patience hangs on them
			d.sleep(i)
			d.log.Debug().Str("job", i.Job.ID).Uint32("arm", i.Arm).Str("stage", stage).Str("reason", v.reason).Msg("waiting")
			return true, nil
		}
		v = end(job.Expired, "waited too long: "+v.reason)
	}
	return true, d.skip(ctx, i, v)
}

func (d *drain) sleep(i txm.Intent) { d.asleep[i.ID] = time.Now().Add(pause) }

// skip ends an intent that never got a nonce. One that has moved on meanwhile is somebody else's.
func (d *drain) skip(ctx context.Context, i txm.Intent, v verdict) error {
	end := txm.Ending{Outcome: v.outcome, Reason: v.reason, CoolDown: txm.CoolDown(v.outcome, i.Arm, d.settled)}
	err := d.queue.Skip(ctx, d.tenure.Fence(), i.ID, end)
	if txm.Refused(err) != "" {
		return nil
	}
	if err == nil {
		d.ended()
	}
	return err
}
