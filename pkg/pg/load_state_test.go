package pg_test

import (
	"maps"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// commit applies blocks to a partition at whatever offset it stands.
func commit(t *testing.T, p *pg.Partition, blocks ...pg.AppliedBlock) {
	t.Helper()
	must(t, p.Commit(t.Context(), pg.Commit{Next: p.Offset().Next + int64(len(blocks)), Blocks: blocks}))
}

// A snapshot has rows once all partitions have a block in common: those of that block, also while one of them is ahead.
func TestSnapshotIsOfTheLowestCommonBlock(t *testing.T) {
	db := pgtest.DB(t)
	take := func() pgtest.State {
		t.Helper()
		s, err := pgtest.Load(t.Context(), db, 0, 1)
		must(t, err)
		return s
	}
	if s := take(); s.HasView() || s.Partitions != 0 {
		t.Errorf("nothing claimed: %+v", s.Progress)
	}
	a := claim(t, db, 0, 2)
	first := follow(chain.BlockRef{Number: 10}, order(1, perp.Created),
		perp.Position{PositionKey: number(9), Status: perp.Active})
	second := follow(first.BlockRef, order(4, perp.Created))
	commit(t, a, first, second)
	if s := take(); s.HasView() || !s.Watermark.Hash.IsZero() {
		t.Errorf("one of two partitions claimed: %+v", s.Progress)
	}
	b := claim(t, db, 1, 2)
	if s := take(); s.HasView() || !s.Watermark.Hash.IsZero() {
		t.Errorf("one of two partitions has a block: %+v", s.Progress)
	}
	commit(t, b, follow(chain.BlockRef{Number: 10}, order(2, perp.Frozen), order(3, perp.Executed),
		perp.Market{MarketToken: chain.Address{5}}))
	if s := take(); s.Level() || s.Watermark.Number != 11 || s.Skew() != 1 || !s.HasView() || len(s.Orders) != 2 ||
		len(s.Markets) != 1 {
		t.Errorf("skewed by one block: %+v, %+v", s.Progress, s.Orders)
	}
	commit(t, b, pg.AppliedBlock{BlockRef: second.BlockRef})
	s := take()
	if !s.Level() || s.Watermark != second.BlockRef || s.Skew() != 0 {
		t.Errorf("level: %+v", s.Progress)
	}
	if len(s.Orders) != 3 || len(s.Positions) != 1 || len(s.Markets) != 1 || len(s.Requests) != 0 {
		t.Errorf("rows: %+v", s)
	}
	if s, err := pgtest.Load(t.Context(), db, 1); err != nil || len(s.Orders) != 1 || len(s.Positions) != 0 ||
		len(s.Markets) != 1 {
		t.Errorf("rows of partition 1: %+v, %v", s, err)
	}
}

// Equal numbers on two branches are not one block, nor is the same block with a corrected set of logs.
func TestWatermarkComparesBranches(t *testing.T) {
	db := pgtest.DB(t)
	a, b := claim(t, db, 0, 2), claim(t, db, 1, 2)
	base := follow(chain.BlockRef{Number: 10})
	commit(t, a, base)
	commit(t, b, base)
	left, right := follow(base.BlockRef), follow(base.BlockRef)
	right.Hash[0]++
	commit(t, a, left)
	commit(t, b, right)
	expect := func(name string, level bool, watermark uint64) {
		t.Helper()
		s, err := db.Progress(t.Context())
		must(t, err)
		if s.Level() != level || s.Watermark.Number != watermark {
			t.Errorf("%s: level %t at %d, want %t at %d", name, s.Level(), s.Watermark.Number, level, watermark)
		}
	}
	expect("two branches", false, 11)
	must(t, b.Undo(t.Context(), pg.Rewind{Next: 5, Ancestor: base.BlockRef}))
	commit(t, b, left)
	expect("the same", true, 12)

	// The topic lost what was final: no verdicts until the partition is past it again.
	for _, p := range []*pg.Partition{a, b} {
		must(t, p.Commit(t.Context(), pg.Commit{Next: 9, Finalized: left.BlockRef}))
		must(t, p.Undo(t.Context(), pg.Rewind{Next: 10, Ancestor: base.BlockRef}))
	}
	expect("below the finalized block", false, 11)
	s, err := db.Progress(t.Context())
	must(t, err)
	if s.Finalized() != left.BlockRef {
		t.Errorf("finalized: %+v", s.Finalized())
	}
}

// TIER-5: a row that is not there is an answer; a database that cannot be asked is not.
func TestLookUps(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	p := claim(t, db, 0, 1)
	block := follow(chain.BlockRef{Number: 10}, order(1, perp.Updated),
		perp.Position{PositionKey: number(2), Status: perp.Closed},
		perp.Request{Key: number(3), Kind: perp.Shift})
	commit(t, p, block)

	o, err := db.Order(t.Context(), number(1))
	if err != nil || !o.Known || o.Row.Status != perp.Updated || o.Row.Reason != "a\x00b\\\xff" ||
		o.At != block.BlockRef {
		t.Errorf("order: %+v, %v", o, err)
	}
	pos, err := db.Position(t.Context(), number(2))
	if err != nil || !pos.Known || pos.Row.Status != perp.Closed {
		t.Errorf("position: %+v, %v", pos, err)
	}
	r, err := db.Request(t.Context(), number(3))
	if err != nil || !r.Known || r.Row.Kind != perp.Shift {
		t.Errorf("request: %+v, %v", r, err)
	}
	if o, err = db.Order(t.Context(), number(99)); err != nil || o.Known || o.At.Number != 11 {
		t.Errorf("no such order: %+v, %v", o, err)
	}
	db.Close()
	if o, err = db.Order(t.Context(), number(99)); err == nil || o.Known {
		t.Errorf("a database that cannot be asked: %+v, %v", o, err)
	}
}

// A snapshot is of the active generation only, and follows a switch at once.
func TestSwitchOfGenerations(t *testing.T) {
	db := pgtest.DB(t)
	commit(t, claim(t, db, 0, 1), follow(chain.BlockRef{Number: 10}, order(1, perp.Created)))
	must(t, db.CreateGeneration(t.Context(), 2))
	next, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 2, Partitions: 1})
	must(t, err)
	commit(t, next, follow(chain.BlockRef{Number: 10}, order(1, perp.Created), order(2, perp.Created)))
	for _, generation := range []int{2, 1, 2} {
		orders := generation
		must(t, db.Switch(t.Context(), generation, "a test"))
		s, err := pgtest.Load(t.Context(), db, 0)
		if err != nil || s.Generation != generation || len(s.Orders) != orders {
			t.Errorf("generation %d: %+v, %v", generation, s.Progress, err)
		}
	}
	if err := db.Switch(t.Context(), 3, "a test"); !pg.Refused(err) {
		t.Errorf("a generation that does not exist was activated: %v", err)
	}
}

// PIPE-7, PIPE-8: checksums are of the rows alone, however they are spread over partitions and steps.
func TestChecksumsIgnorePartitions(t *testing.T) {
	var want pgtest.Checksums
	for _, partitions := range []int{1, 4} {
		db := pgtest.DB(t)
		rows := make([][]perp.Row, partitions)
		for k := range uint64(40) {
			o := order(k, perp.Created)
			rows[wire.Partition(o.Account.Hash(), partitions)] = append(rows[wire.Partition(o.Account.Hash(),
				partitions)], o)
		}
		for i := range partitions {
			commit(t, claim(t, db, i, partitions), follow(chain.BlockRef{Number: 10}, rows[i]...))
		}
		got, _, err := pgtest.ChecksumsIn(t.Context(), db, 1)
		must(t, err)
		if want != nil && !maps.Equal(got, want) {
			t.Errorf("with %d partitions the checksums differ", partitions)
		}
		want = got
	}
}

func TestListenerHearsOfCommits(t *testing.T) {
	url := pgtest.URL(t)
	cfg := configFor(url)
	cfg.PollInterval = time.Hour
	db := openConfig(t, cfg)
	l := db.Listener()
	defer l.Close()
	must(t, l.WaitChange(t.Context())) // a fresh connection may have missed something
	p := claim(t, db, 0, 1)
	for range 3 {
		commit(t, p, follow(p.Offset().Tip))
		must(t, l.WaitChange(t.Context()))
	}
	must(t, db.CreateGeneration(t.Context(), 2))
	must(t, db.Switch(t.Context(), 2, "a test"))
	must(t, l.WaitChange(t.Context()))
}

// Without a connection, or without a notification, the listener polls.
func TestListenerPolls(t *testing.T) {
	proxy := pgtest.NewProxy(t, pgtest.URL(t))
	cfg := configFor(proxy.URL())
	cfg.PollInterval = 10 * time.Millisecond
	l := openConfig(t, cfg).Listener()
	defer l.Close()
	for i := range 6 {
		if i%2 == 1 {
			proxy.Cut()
		}
		must(t, l.WaitChange(t.Context()))
	}
	unreachable := openConfig(t, func() pg.Config {
		c := configFor("postgres://x@127.0.0.1:1/x")
		c.PollInterval = 10 * time.Millisecond
		return c
	}()).Listener()
	must(t, unreachable.WaitChange(t.Context()))
}
