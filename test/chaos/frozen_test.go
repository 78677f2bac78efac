package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"perpkeeper/pkg/kafka/wire"
	parts "perpkeeper/test/rig"
)

// A scanner that is frozen while it catches up, replaced and woken is not heard: nothing it still writes changes a row,
// and it stands by (PIPE-2).
func TestFrozenScanner(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(parts.Seed(t), 0))
	r := plainRig(t)
	owner, taker := r.scanner, r.second("scanner")
	for range 4 {
		r.catchUp(owner, random)
		owner.signal(syscall.SIGSTOP)
		taker.start()
		r.compareAtStalledHead("another scanner took over")
		r.awaitFinal()
		before := r.progress()
		owner.signal(syscall.SIGCONT)
		r.await("the woken scanner stands by", func(ctx context.Context) error {
			if owner.Metric("scanner_standing_by") != 1 {
				return errNotYet
			}
			return nil
		})
		r.awaitRead()
		r.unchanged(before, r.progress())
		r.devnet.Resume()
		r.reorg(random)
		r.compareAtStalledHead("the woken scanner stands by")
		owner.Kill()
		owner, taker = taker, owner
	}
	stale, all := r.stale()
	t.Logf("%d of %d records of the topic are stale", stale, all)
	if stale == 0 {
		t.Error("no woken scanner has tried to write")
	}
	r.checkCoverage()
}

// catchUp starts a process anew behind a chain that has gone on, and returns while it catches up: tables that follow
// the chain move, and are behind.
func (r *rig) catchUp(p *process, random *rand.Rand) {
	r.t.Helper()
	p.Kill()
	r.devnet.Resume()
	r.mine(150 + random.IntN(100))
	behind, some := r.progress().Offsets[0].Next, 1+random.Int64N(100)
	p.start()
	r.await(p.Name+" is catching up", func(ctx context.Context) error {
		at, err := r.db.ProgressOf(ctx, 1)
		if err == nil && at.Offsets[0].Next < behind+some {
			return errNotYet
		}
		return err
	})
}

// stale counts the records that scanners wrote after they had been replaced.
func (r *rig) stale() (stale, all int) {
	r.t.Helper()
	for p := range partitions {
		highest := uint64(0)
		for _, record := range parts.Records(r.t, r.kafka, wire.LogTopic(r.chainID), p) {
			_, meta, err := wire.Decode(record)
			if err != nil {
				r.t.Fatal(err)
			}
			highest = max(highest, meta.Epoch)
			all++
			if meta.Epoch < highest {
				stale++
			}
		}
	}
	return stale, all
}

// A statevm that is frozen while it catches up, loses its partitions to another one and is woken writes no row: the
// state does not move (PIPE-3).
func TestFrozenStatevm(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(parts.Seed(t), 0))
	r := newRig(t).run()
	r.warmUp()
	owner, taker := r.statevm, r.second("statevm")
	fenced := 0.0
	for range 4 {
		r.catchUp(owner, random)
		owner.signal(syscall.SIGSTOP)
		taker.start()
		r.compareAtStalledHead("another statevm took over")
		r.awaitFinal()
		r.awaitRead()
		before := r.progress()
		r.dropHeartbeats()
		owner.signal(syscall.SIGCONT)
		r.await("the two share the partitions", func(ctx context.Context) error {
			a, b := owner.Metric("bus_group_partitions"), taker.Metric("bus_group_partitions")
			if a != partitions/2 || b != partitions/2 {
				return fmt.Errorf("%v and %v", a, b)
			}
			return nil
		})
		r.unchanged(before, r.progress())
		fenced += owner.Metric("statevm_fenced_total")
		r.devnet.Resume()
		r.reorg(random)
		r.compareAtStalledHead("the woken statevm has its share")
		owner.Kill()
		r.compareAtHead("the woken statevm was killed")
		owner, taker = taker, owner
	}
	t.Logf("%.0f writes were refused to an owner of before", fenced)
	if fenced == 0 && r.broker != nil {
		t.Error("no woken statevm has tried to write")
	}
	r.checkCoverage()
}

// dropHeartbeats keeps from the next member that wakes what its group has done meanwhile, until its heartbeat is given
// up: so long it takes itself for the owner. Only the embedded broker can do that.
func (r *rig) dropHeartbeats() {
	if r.broker == nil {
		return
	}
	var newest int32
	r.broker.ControlKey(kmsg.Heartbeat, func(request kmsg.Request) (kmsg.Response, error, bool) {
		beat, is := request.(*kmsg.HeartbeatRequest)
		if !is || beat.Generation >= newest {
			if is {
				newest = beat.Generation
			}
			return nil, nil, false //nolint:nilnil // seen, and left to the broker
		}
		return nil, nil, true //nolint:nilnil // without an answer
	})
}
