package generation_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The patience is for two generations to come to stand at the same place: comparing and switching take as long as whole
// tables take.
func TestPatienceIsForStandingLevel(t *testing.T) {
	db := pgtest.DB(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.AddGeneration(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	at := chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}}
	apply := func(number int) {
		t.Helper()
		p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: number, Partitions: 1})
		must(err)
		must(p.Commit(t.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{{BlockRef: at}}}))
	}
	apply(1)
	if _, err := generation.Compare(t.Context(), db, 1, 2, time.Nanosecond); !errors.Is(err, pg.ErrApart) {
		t.Errorf("two generations that stand at different places were compared: %v", err)
	}
	apply(2)
	c, err := generation.Compare(t.Context(), db, 1, 2, time.Nanosecond)
	if err != nil || !c.Equal() {
		t.Errorf("differing in %v, %v", c.Differing(), err)
	}
	must(generation.Switch(t.Context(), db, 2, "", time.Nanosecond))
}

// A generation of a log topic of another number of partitions stands still: it is not being filled.
func TestFillingIsOfTheTopic(t *testing.T) {
	all, err := pgtest.DB(t).Generations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := pg.Generation{Number: 2, Layout: all[0].Layout, Partitions: 4, Followed: true}
	before := pg.Generation{Number: 3, Layout: all[0].Layout, Partitions: 2, Followed: true}
	for partitions, want := range map[int]int{4: 2, 2: 3, 8: 0} {
		if got := generation.Filling(append(all, now, before), partitions); got != want {
			t.Errorf("of %d partitions: generation %d is being filled, want %d", partitions, got, want)
		}
	}
}

// meeting is an empty topic that answers when all who ask have come.
type meeting struct{ *sync.WaitGroup }

func (m meeting) Bounds(context.Context, string, int) (first, end int64, err error) {
	m.Done()
	m.Wait()
	return 0, 0, nil
}

// However many ask at once for a generation to be filled get the same: each would take a second state's place on the
// disk.
func TestOneFillingForAll(t *testing.T) {
	const many = 3
	db, topic := pgtest.DB(t), meeting{new(sync.WaitGroup)}
	topic.Add(many)
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			number, err := generation.Fill(t.Context(), db, topic, wire.Config{LogPartitions: 1}, time.Minute)
			if err != nil || number != 2 {
				t.Errorf("generation %d is filled, %v", number, err)
			}
		})
	}
	all.Wait()
}
