package keeperctl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
)

// liquidationsCommand lists the active positions that are being liquidated, or could not be (LIQ-8).
func liquidationsCommand(cmd *cobra.Command) runner {
	failed := cmd.Flags().Bool("failed", false, "only those that could not be liquidated")
	return func(ctx context.Context, s *session, _ []string) error {
		db, err := s.database(ctx)
		if err != nil {
			return err
		}
		return listLiquidations(ctx, db, *failed, s.out)
	}
}

func listLiquidations(ctx context.Context, db *pg.DB, onlyFailed bool, out printer) error {
	all, err := db.Liquidations(ctx)
	if err != nil {
		return err
	}
	rows := newTable("position", "account", "status", "job", "attempt", "outcome", "ended", "reason")
	rows.empty = "no position is being liquidated, and none could not be"
	failed := 0
	for _, l := range all {
		ended := "-"
		if l.Status == pg.LiquidationFailed {
			failed, ended = failed+1, text.Moment(l.EndedAt)
		}
		if !onlyFailed || l.Status == pg.LiquidationFailed {
			rows.add(l.Position, l.Account, l.Status, l.JobID, l.Attempt, l.Outcome, ended, text.FirstLine(l.Reason))
		}
	}
	if err := out.table(rows); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("positions that could not be liquidated: %d (docs/runbooks/jobs.md)", failed)
}
