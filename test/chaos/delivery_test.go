package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// What stands in the log topic a second time, or was written by a scanner that had been replaced, changes nothing:
// copies of old blocks under their own epoch and under the present one, and whatever an old epoch says of reorgs,
// finality and halts (PIPE-2, PIPE-3).
func TestStaleAndDoubleDeliveries(t *testing.T) {
	long(t)
	from := seed(t)
	random := rand.New(rand.NewPCG(from, 0))
	r := plainRig(t)
	r.devnet.Resume()
	for range 3 {
		r.reorg(random)
		r.mine(5)
	}
	r.scanner.restart() // an epoch that can be stale
	r.compareAtStalledHead("a second epoch")
	r.awaitFinal()
	r.scanner.Kill()
	r.compareAtHead("the scanner's death")
	before := r.checksums()
	progress := r.progress()
	written := r.deliver(random, progress)
	t.Logf("%d records delivered again", written)
	r.awaitRead()
	r.unchanged(progress, r.progress())
	if after := r.checksums(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the tables have changed:\n%v\n%v", before, after)
	}
	r.statevm.restart()
	r.scanner.start()
	r.devnet.Resume()
	r.reorg(random)
	r.compareAtStalledHead("deliveries that were stale or double")
	r.checkCoverage()
}

// deliver writes what must change nothing to every partition, and returns how many records that were.
func (r *rig) deliver(random *rand.Rand, at pg.Progress) (count int) {
	r.t.Helper()
	producer := r.kafka.Producer(wire.LogTopic(r.chainID))
	for p := range partitions {
		present := at.Offsets[p].Epoch
		written := batches(r.t, r.records(wire.LogTopic(r.chainID), p))
		onChain := slices.DeleteFunc(slices.Clone(written), func(b batch) bool { return !r.chain.Has(b.block) })
		// the newest
		all := [][]bus.Record{under(r.t, onChain[len(onChain)-1], present),
			under(r.t, onChain[len(onChain)-1], present-1)}
		for range 5 {
			all = append(all, under(r.t, onChain[random.IntN(len(onChain))], present),
				under(r.t, written[random.IntN(len(written))], present-1))
		}
		all = append(all, r.staleWords(at.Offsets[p], present-1)...)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, records := range all {
			if _, err := producer.Produce(r.t.Context(), p, records); err != nil {
				r.t.Fatal(err)
			}
			count += len(records)
		}
	}
	return count
}

// staleWords are what a replaced scanner may still say behind its successor's back.
func (r *rig) staleWords(at pg.Offset, epoch uint64) (all [][]bus.Record) {
	r.t.Helper()
	back := chain.BlockRef{Number: at.Tip.Number - 1, Hash: at.Tip.Parent}
	elsewhere := chain.BlockRef{Number: at.Tip.Number, Hash: chain.Hash{0xbb}, Parent: at.Tip.Parent}
	reorg := chain.Reorg{Ancestor: back, OldTip: at.Tip}
	for _, m := range []wire.Message{
		wire.Reorg{Reorg: reorg}, wire.Reorg{Reorg: reorg, Accepted: true},
		wire.Finalized{Block: elsewhere}, wire.Halt{Block: elsewhere, Reason: "stale"},
		wire.BlockEnd{Block: elsewhere, Digest: wire.Digest(nil)},
		wire.Epoch{Number: epoch, Owner: "stale"},
	} {
		record, err := wire.Encode(make([]byte, len(chain.Hash{})), m, epoch, 1)
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, []bus.Record{record})
	}
	return all
}

// batch is a block as it was written to a partition, with its end.
type batch struct {
	block   chain.BlockRef
	records []bus.Record
}

// batches are a partition's blocks, in the order in which they were written, those that left the chain included.
func batches(t *testing.T, records []bus.Record) (all []batch) {
	t.Helper()
	var open []bus.Record
	for _, record := range records {
		m, _, err := wire.Decode(record)
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case wire.Log, wire.Tx, wire.Param, wire.Audit:
			open = append(open, record)
		case wire.BlockEnd:
			all, open = append(all, batch{m.Block, append(open, record)}), nil
		default:
			open = nil
		}
	}
	return all
}

// under is a copy of a block as a scanner of another epoch would have written it.
func under(t *testing.T, b batch, epoch uint64) []bus.Record {
	t.Helper()
	copies := make([]bus.Record, len(b.records))
	for i, record := range b.records {
		m, meta, err := wire.Decode(record)
		if err == nil {
			copies[i], err = wire.Encode(record.Key, m, epoch, meta.Filter)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return copies
}

func (r *rig) checksums() pg.Checksums {
	r.t.Helper()
	sums, _, err := r.db.Checksums(r.t.Context(), 1)
	if err != nil {
		r.t.Fatal(err)
	}
	return sums
}

// awaitRead waits until statevm has read the topic to its end.
func (r *rig) awaitRead() {
	r.t.Helper()
	for p := range partitions {
		_, end, err := r.kafka.Bounds(r.t.Context(), wire.LogTopic(r.chainID), p)
		if err != nil {
			r.t.Fatal(err)
		}
		r.await(fmt.Sprintf("partition %d is read to its end", p), func(ctx context.Context) error {
			at, err := r.db.ProgressOf(ctx, 1)
			if err == nil && at.Offsets[p].Next < end {
				return fmt.Errorf("offset %d of %d", at.Offsets[p].Next, end)
			}
			return err
		})
	}
}

// unchanged fails if anything but the offset has moved: a revision is given to every transaction that touches rows.
func (r *rig) unchanged(before, after pg.Progress) {
	r.t.Helper()
	for p, o := range after.Offsets {
		was := before.Offsets[p]
		was.Next, was.Mark, was.Epoch = o.Next, o.Mark, o.Epoch // where it has read to
		if o != was {
			r.t.Errorf("partition %d has changed:\n%+v\n%+v", p, before.Offsets[p], o)
		}
	}
}
