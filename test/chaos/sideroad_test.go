package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	parts "perpkeeper/test/rig"
)

// dieInHalt lets the chain leave a final block, and the operator accept it; a process dies on the way.
func dieInHalt(r *rig, at point, random *rand.Rand) bool {
	r.t.Helper()
	r.compareAtHead("the seed before")
	final := r.awaitFinal()
	arm, died := armed(at.label, nth(random, partitions)), false
	accepting := strings.HasPrefix(at.label, "scanner.accept")
	p := r.process(at)
	if !accepting {
		p.restart(arm)
	}
	ancestor := final.Number - 1 - random.Uint64N(6)
	fork, err := r.devnet.Reorg(r.head()-ancestor, []evmnode.ForkStyle{evmnode.Replay, evmnode.Drop}[random.IntN(2)])
	if err != nil {
		r.t.Fatal(err)
	}
	r.mine(1 + random.IntN(3))
	if !accepting {
		died = p.Dies(deathWithin, func() {})
		p.start()
	}
	r.await("every partition is halted", func(ctx context.Context) error {
		at, err := r.db.ProgressOf(ctx, 1)
		for _, o := range at.Offsets {
			if o.Halted == "" {
				return fmt.Errorf("partition %d is not", o.Partition)
			}
		}
		return err
	})
	accept := "PERPKEEPER_SCANNER_ACCEPT_REORG_TO=" + fork.Ancestor.Hash.Hex()
	if accepting {
		r.scanner.restart(accept, arm)
		died = r.scanner.Dies(deathWithin, func() {})
	}
	r.scanner.restart(accept)
	r.compareAtHead("an accepted reorg and a death at " + at.label)
	r.scanner.restart()
	r.compareAtStalledHead("the operator's word was taken back")
	return died
}

// unknown is a record of a kind that nobody knows.
func unknown(epoch uint64) (bus.Record, error) {
	record, err := wire.Encode(nil, wire.Epoch{Number: epoch}, epoch, 1)
	for i, h := range record.Headers {
		if h.Key == "t" {
			record.Headers[i].Value = []byte("RIDDLE")
		}
	}
	return record, err
}

// dieAtDeadLetter puts a record that nobody understands into the topic, and kills statevm between sending it to the
// dead letters and noting that.
func dieAtDeadLetter(r *rig, at point, _ *rand.Rand) bool {
	r.t.Helper()
	r.scanner.Kill() // so that all partitions stay at one block
	r.compareAtHead("the seed before")
	victim := len(r.letters()) / 2 // each death sends a letter twice
	before := r.progress()
	record, err := unknown(before.Offsets[victim].Epoch)
	if err != nil {
		r.t.Fatal(err)
	}
	r.statevm.restart(armed(at.label, 1))
	if _, err := r.kafka.Producer(wire.LogTopic(r.chainID)).
		Produce(r.t.Context(), victim, []bus.Record{record}); err != nil {
		r.t.Fatal(err)
	}
	died := r.statevm.Dies(deathWithin, func() {})
	r.statevm.start()
	r.awaitRiddles(victim + 1)
	r.statevm.Stop() // in order, so that what was sent is noted
	r.statevm.start()
	r.awaitRiddles(victim + 1)
	if n := len(r.letters()); n != 2*(victim+1) {
		r.t.Errorf("%d dead letters, want %d", n, 2*(victim+1))
	}
	after := r.progress()
	for p, o := range after.Offsets {
		if o.Next > before.Offsets[p].Next+1 || p == victim && o.Next != before.Offsets[p].Next {
			r.t.Errorf("partition %d went from offset %d to %d", p, before.Offsets[p].Next, o.Next)
		}
	}
	r.compareAtHead("a death at " + at.label)
	return died
}

// awaitRiddles waits until statevm has met so many records that it does not understand, each in a partition of its own,
// letters are the records of the dead letter topic.
func (r *rig) letters() []bus.Record {
	r.t.Helper()
	return parts.Records(r.t, r.kafka, wire.DeadLetterTopic(r.chainID), 0)
}

// and every one has been sent to the dead letters twice: by the process that died and by its successor.
func (r *rig) awaitRiddles(count int) {
	r.t.Helper()
	r.await("statevm has met the riddles", func(ctx context.Context) error {
		halted, letters := int(r.statevm.Metric("statevm_halted")), len(r.letters())
		if halted != count || letters < 2*count {
			return fmt.Errorf("%d partitions halted, %d letters", halted, letters)
		}
		return nil
	})
}
