package scanner

import (
	"context"
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
)

// doubt is a block that was published without proof, and where it stands.
type doubt struct {
	block   chain.BlockRef
	attempt uint32
	places  []place // by partition
}

// place is where a block stands in a partition.
type place struct {
	first, end int64 // the offsets of its first record and its BLOCK_END
	verified   bool  // by the partition's own word
}

func (d doubt) is(other doubt) bool {
	return d.block.Hash == other.block.Hash && d.attempt == other.attempt
}

// mostDoubts is how many blocks are kept to be proven, whatever becomes of those above them: twelve hours in which
// every block of the chain concerns us and nobody serves receipts, in about 25 MB.
const mostDoubts = 100_000

// doubts are the blocks on the topic that are still to be proven, oldest first. One that lies deeper than can be
// corrected is still asked about: if it is right, what waits for its proof can go on. It is safe for concurrent use.
type doubts struct {
	show func(unproven int)
	wake chan struct{} // holds a token if something was added

	mu   sync.Mutex
	open []doubt
	lost int // given up because there were too many
}

func newDoubts(show func(unproven int)) *doubts {
	d := &doubts{show: show, wake: make(chan struct{}, 1)}
	d.count()
	return d
}

// add takes a block in, in place of the same block under an older attempt.
func (d *doubts) add(one doubt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(o doubt) bool { return o.block.Hash == one.block.Hash })
	d.open = append(d.open, one)
	if extra := len(d.open) - mostDoubts; extra > 0 {
		d.open = slices.Delete(d.open, 0, extra)
		d.lost += extra
	}
	d.count()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// settle removes a block that is proven, or that nobody can prove or needs to prove any more.
func (d *doubts) settle(one doubt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, one.is)
	d.count()
}

// forgetAbove removes the blocks above a number: they were taken back.
func (d *doubts) forgetAbove(number uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(o doubt) bool { return o.block.Number > number })
	d.count()
}

// all returns the blocks that are open, oldest first.
func (d *doubts) all() []doubt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.open)
}

// await waits until there is something to prove.
func (d *doubts) await(ctx context.Context) error {
	for len(d.all()) == 0 {
		select {
		case <-d.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// count shows how many blocks are unproven. The mutex is held, or nobody else knows of d yet.
func (d *doubts) count() { d.show(len(d.open) + d.lost) }
