package statevm

import (
	"testing"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// Commits that take longer than a block, each partition's as long as it likes (a disk that is busy with a rebuild, a
// vacuum), blind no reader: the view of the highest block that all partitions have moves on at least every 2 s.
func TestViewsUnderSlowCommits(t *testing.T) {
	s := newSite(t)
	x, _, _ := s.play(t, 5, 4)
	s.launch(s.config(4, s.dbURL))
	x.grow(2)
	eventually(t, "it starts", func() bool { return s.caughtUp(x) })
	pgtest.Tamper(t, s.dbURL,
		`CREATE FUNCTION state_g1.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.next_offset <> OLD.next_offset THEN PERFORM pg_sleep(1.2 * (0.75 + 0.5 * random())); END IF; RETURN NEW; END $$`,
		`CREATE TRIGGER slow BEFORE UPDATE ON state_g1.stream_offset FOR EACH ROW EXECUTE FUNCTION state_g1.slow()`)

	const lasts = 16 * time.Second
	began, end := time.Now(), time.After(lasts)
	block, look := time.NewTicker(450*time.Millisecond), time.NewTicker(50*time.Millisecond)
	defer block.Stop()
	defer look.Stop()
	var seen pg.Seen
	var longest time.Duration
	views, last := 0, began
	for running := true; running; {
		select {
		case <-end:
			running = false
		case <-block.C:
			x.grow(2)
		case <-look.C:
			c, err := s.db.Changes(t.Context(), []int{0, 1, 2, 3}, seen)
			if err != nil {
				t.Fatal(err)
			}
			if c.HasView() && c.Seen.At != seen.At {
				views, longest, last = views+1, max(longest, time.Since(last)), time.Now()
				seen = c.Seen
			}
		}
	}
	t.Logf("%d views in %s, the longest time without a new one %s", views, lasts, longest)
	if views < int(lasts/(2*time.Second)) {
		t.Errorf("%d views in %s", views, lasts)
	}
	eventually(t, "it catches up", func() bool { return s.caughtUp(x) })
	x.agree(s.db, 1)
}
