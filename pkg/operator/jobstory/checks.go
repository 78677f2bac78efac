package jobstory

import (
	"cmp"
	"context"
	"fmt"

	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/outbox"
)

// addChecks tells what was said of each arm before it got its nonce: by the gate, by whose turn it was, by the state,
// by the choice of reports, by the simulated call. Whatever was said again in other figures is told once.
func (y *Story) addChecks(ctx context.Context, db *pg.DB, arms []outbox.Arm) error {
	if len(arms) == 0 {
		return nil
	}
	ids, byID := make([]int64, len(arms)), map[int64]outbox.Arm{}
	for n, a := range arms {
		ids[n], byID[a.Intent.ID] = a.Intent.ID, a
	}
	entries, err := outbox.NewCheckLog(db).Of(ctx, ids)
	for _, e := range entries {
		where := fmt.Sprintf("keeper.preflight_check of %d", e.Intent)
		if e.Block > 0 {
			where += fmt.Sprintf(", block %d", e.Block)
		}
		i := byID[e.Intent].Intent
		y.addf(e.At, i.Job.ID, i.Arm, "checked", where, "%s, %s%s; says %s", e.Check, e.Verdict, text.Because(e.Said),
			cmp.Or(e.By, "nobody by name"))
	}
	return err
}
