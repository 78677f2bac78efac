package pg_test

import (
	"testing"

	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/delayed/delayedtest"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// DLY-1, DLY-3, DLY-5, DLY-6, DLY-7.
func TestDelayedConforms(t *testing.T) {
	delayedtest.Run(t, func(t *testing.T) delayedtest.Bench {
		s := pgtest.DB(t).Delayed()
		return delayedtest.Bench{
			Store: s, Add: s.Add, Cancel: s.Cancel, Retry: s.Retry,
			Jobs: func(t *testing.T) []delayed.Job { return everyJob(t, s) },
		}
	})
}

// everyJob reads all rows, those called off included, by id.
func everyJob(t *testing.T, s pg.Delayed) (all []delayed.Job) {
	t.Helper()
	const gap = 5 // a row that was there already costs a number
	for id, missing := int64(1), 0; missing < gap; id++ {
		j, known, err := s.Job(t.Context(), id)
		must(t, err)
		if !known {
			missing++
			continue
		}
		missing = 0
		all = append(all, j)
	}
	return all
}
