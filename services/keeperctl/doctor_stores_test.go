package keeperctl

import (
	"slices"
	"testing"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/services/keeperctl/doctor"
)

// Left over is what statevm keeps up to date beside the active generation; what is of another number of partitions
// stands still.
func TestLeftoversAreKeptUpToDate(t *testing.T) {
	db := pgtest.DB(t)
	number, err := db.AddGeneration(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: number, Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	s := &session{Config: defaultConfig()}
	for partitions, want := range map[int][]int{2: {number}, 4: nil} {
		s.Keeper.LogPartitions = partitions
		var state doctor.State
		if err := s.countState(t.Context(), db, &state); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(state.Leftover, want) {
			t.Errorf("with %d partitions generations %v are left over, want %v", partitions, state.Leftover, want)
		}
	}
}
