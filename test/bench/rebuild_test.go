package bench

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/pg"
	"perpkeeper/services/keeperctl"
)

// PIPE-8: while the chain goes on and generation 1 serves, a second one is filled from the topic's beginning, watched
// by an operator who is killed and looks again; both are equal at the same block, the switch and the way back are one
// row each, and the one that is no longer active is kept up to date.
func TestRebuildLive(t *testing.T) {
	n := newBench(t, 2)
	for range 300 {
		n.venue.publish(n.venue.next())
	}
	defer n.run()()
	n.await(1)

	grow := func() {
		old, sizes := n.venue.tip, maps.Clone(n.venue.sizes)
		n.venue.publish(n.venue.next())
		n.venue.everywhere(wire.Reorg{Reorg: chain.Reorg{Ancestor: old, OldTip: n.venue.tip}})
		n.venue.tip, n.venue.asked, n.venue.sizes = old, trade{}, sizes
		n.venue.publish(n.venue.next())
	}
	killed, kill := context.WithCancel(t.Context())
	r := keeperctl.Rebuilder{DB: n.db, Topic: n.client, Keeper: n.cfg.Keeper, Patience: patience,
		Show: func(generation.Progress) { kill() }}
	if err := r.Run(killed, new(bytes.Buffer)); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatalf("the killed rebuild ended with %v", err)
	}
	var last generation.Progress
	r.Show = func(p generation.Progress) {
		last = p
		grow()
	}
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Run(ctx, &out); err != nil {
		t.Fatal(err)
	}
	if last.Generation != 2 || !strings.Contains(out.String(), "generation 2 holds what generation 1 holds") {
		t.Errorf("filled generation %d, and said %q", last.Generation, out.String())
	}

	for _, to := range []int{2, 1} {
		n.switchTo(to)
		grow()
		n.await(1)
		n.await(2)
	}
	c, err := n.db.Compare(t.Context(), 1, 2)
	if err != nil || !c.Equal() {
		t.Errorf("after switching there and back: %v, differing %v, %v", c.SamePlace(), c.Differing(), err)
	}
	if err := n.db.DropGeneration(t.Context(), 1); !pg.Refused(err) {
		t.Errorf("the active generation was dropped: %v", err)
	}
	if err := n.db.DropGeneration(t.Context(), 2); err != nil {
		t.Error(err)
	}
	grow()
	n.await(1)
}

// switchTo switches as soon as both generations stand at the same place.
func (n *bench) switchTo(generation int) {
	n.tb.Helper()
	l := n.db.Listener()
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := n.db.Switch(ctx, generation, "")
		if err == nil {
			break
		}
		if !errors.Is(err, pg.ErrApart) || l.WaitChange(ctx) != nil {
			n.tb.Fatalf("switching to generation %d: %v", generation, err)
		}
	}
	if at, err := n.db.Progress(ctx); err != nil || at.Generation != generation {
		n.tb.Fatalf("readers use generation %d, %v", at.Generation, err)
	}
}
