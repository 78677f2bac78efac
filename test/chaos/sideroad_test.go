package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/wire"
	"perpkeeper/services/devnet"
	"perpkeeper/services/devnet/evmnode"
)

// faithlessness shows in nothing but the receipts of another node.
var faithlessness = map[string]lie{getLogs: leavesOut(1000), getReceipts: refuses}

// correctionRig reads through two nodes. One never serves receipts and leaves all logs out; the other one is honest,
// and for a while serves neither.
func correctionRig(t *testing.T) *rig {
	t.Helper()
	var faithless, silent *liar
	r := newRig(t, func(d *devnet.Devnet) []string {
		faithless, silent = startLiar(t, d.RPC()), startLiar(t, d.RPC())
		return []string{faithless.url, silent.url}
	})
	r.faithless, r.silent = faithless, silent
	r.run()
	r.warmUp()
	faithless.setLies(faithlessness)
	return r
}

// dieInCorrection makes the scanner publish blocks without their logs, and kills it while it corrects them.
func dieInCorrection(r *rig, at point, random *rand.Rand) bool {
	r.t.Helper()
	silence := map[string]lie{getLogs: refuses, getReceipts: refuses}
	r.silent.setLies(silence)
	r.faithless.setLies(faithlessness)
	r.devnet.Resume()
	r.scanner.restart(armed(at.label, nth(random, partitions)))
	wrong := 1 + random.IntN(4)
	r.await("blocks are published without their logs", func(context.Context) error {
		r.executor.round()
		if n := r.faithless.countLies(getLogs); n < wrong {
			return fmt.Errorf("%d of %d", n, wrong)
		}
		return nil
	})
	if random.IntN(3) == 0 {
		r.reorg(random)
	}
	r.silent.clearLies()
	// a reorg may have taken the blocks away that were to be corrected: then there are others
	died := r.scanner.dies(deathWithin, func(turn int) {
		r.executor.round()
		switch turn % 10 {
		case 5:
			r.silent.setLies(silence)
		case 9:
			r.silent.clearLies()
		}
	})
	r.silent.clearLies()
	if random.IntN(3) == 0 {
		r.reorg(random)
	}
	r.scanner.start()
	r.compareAtStalledHead("a death at " + at.label)
	return died
}

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
		died = p.dies(deathWithin, func(int) {})
		p.start()
	}
	r.await("every partition is halted", func(ctx context.Context) error {
		at, err := r.db.StandingOf(ctx, 1)
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
		died = r.scanner.dies(deathWithin, func(int) {})
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
	r.scanner.kill() // so that all partitions stay at one block
	r.compareAtHead("the seed before")
	victim := len(r.letters()) / 2 // each death sends a letter twice
	before := r.standing()
	record, err := unknown(before.Offsets[victim].Epoch)
	if err != nil {
		r.t.Fatal(err)
	}
	r.statevm.restart(armed(at.label, 1))
	if _, err := r.kafka.Producer(wire.LogTopic(r.chainID)).
		Produce(r.t.Context(), victim, []bus.Record{record}); err != nil {
		r.t.Fatal(err)
	}
	died := r.statevm.dies(deathWithin, func(int) {})
	r.statevm.start()
	r.awaitRiddles(victim + 1)
	r.statevm.stop() // in order, so that what was sent is noted
	r.statevm.start()
	r.awaitRiddles(victim + 1)
	if n := len(r.letters()); n != 2*(victim+1) {
		r.t.Errorf("%d dead letters, want %d", n, 2*(victim+1))
	}
	after := r.standing()
	for p, o := range after.Offsets {
		if o.Next > before.Offsets[p].Next+1 || p == victim && o.Next != before.Offsets[p].Next {
			r.t.Errorf("partition %d went from offset %d to %d", p, before.Offsets[p].Next, o.Next)
		}
	}
	r.compareAtHead("a death at " + at.label)
	return died
}

// awaitRiddles waits until statevm has met so many records that it does not understand, each in a partition of its own,
// and every one has been sent to the dead letters twice: by the process that died and by its successor.
func (r *rig) awaitRiddles(count int) {
	r.t.Helper()
	r.await("statevm has met the riddles", func(ctx context.Context) error {
		halted, letters := int(r.statevm.metrics(ctx)["statevm_halted"]), len(r.letters())
		if halted != count || letters < 2*count {
			return fmt.Errorf("%d partitions halted, %d letters", halted, letters)
		}
		return nil
	})
}
