package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// errNotYet is the error of conditions without a better text.
var errNotYet = errors.New("not yet")

// await polls until a condition holds. The condition returns what is still missing.
func (r *rig) await(what string, condition func(context.Context) error) {
	r.t.Helper()
	hung := time.NewTimer(patience)
	defer hung.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := condition(r.t.Context())
		if missing == nil {
			return
		}
		for _, p := range append([]*process{r.scanner, r.statevm}, r.others...) {
			if err := p.Check(); err != nil {
				r.t.Fatal(err)
			}
		}
		select {
		case <-hung.C:
			r.t.Fatalf("%s: still %v after %s", what, missing, patience)
		case <-tick.C:
		}
	}
}

// compareAtStalledHead lets some more blocks come, stops the head and waits until all tables stand there and are equal
// to the fold. The head stands afterwards.
func (r *rig) compareAtStalledHead(after string) {
	r.t.Helper()
	r.mine(2)
	r.devnet.Stall(still)
	r.compareAtHead(after)
}

// compareAtHead waits until all tables are those of the chain's head, which stands.
func (r *rig) compareAtHead(after string) {
	r.t.Helper()
	head := r.head()
	r.await("tables equal to a fold of the chain after "+after,
		func(ctx context.Context) error { return r.chain.Equals(ctx, r.db, head) })
}

// checkCoverage fails the test if nothing has happened on the exchange that could have been lost.
func (r *rig) checkCoverage() {
	r.t.Helper()
	rows := map[perp.Table]int{}
	for _, table := range perp.Tables() {
		rows[table] = len(r.chain.Book.Rows(table))
	}
	r.t.Logf("compared up to block %d: rows %v", r.chain.Next()-1, rows)
	for _, table := range []perp.Table{perp.Positions, perp.Orders, perp.Transactions} {
		if rows[table] == 0 {
			r.t.Errorf("the compared tables hold no row of %s", table)
		}
	}
}

// progress is how far the tables have come.
func (r *rig) progress() pg.Progress {
	r.t.Helper()
	at, err := r.db.ProgressOf(r.t.Context(), 1)
	if err != nil {
		r.t.Fatal(err)
	}
	return at
}

// awaitFinal waits until every partition knows the finalized block of a head that stands.
func (r *rig) awaitFinal() chain.BlockRef {
	r.t.Helper()
	const lag = 2 // of the devnet's finality
	var final chain.BlockRef
	r.await("the tables know the finalized block", func(ctx context.Context) error {
		at, err := r.db.ProgressOf(ctx, 1)
		if final = at.Finalized(); err == nil && final.Number+lag < r.head() {
			return fmt.Errorf("final %d, head %d", final.Number, r.head())
		}
		return err
	})
	return final
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
