package keeperctl

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/retention"
	"perpkeeper/pkg/pg/txstore"
)

// archive shows where the attempts of jobs are that have ended.
func archive(ctx context.Context, db *pg.DB, _ Settings, _ []string, out printer) error {
	stock, err := txstore.NewArchive(db).Stock(ctx)
	if err != nil {
		return err
	}
	return printStock(stock, out)
}

func printStock(stock retention.Stock, out printer) error {
	rows := newTable("where", "attempts", "transactions", "bytes", "since", "dropped")
	for _, w := range stock.Weeks {
		dropped := "-"
		if w.DroppedAt != nil {
			dropped = text.Moment(*w.DroppedAt)
		}
		rows.add("archive", w.Intents, w.Attempts, w.Bytes, w.Start.Format(time.DateOnly), dropped)
	}
	since := "-"
	if !stock.OldestLive.IsZero() {
		since = text.Moment(stock.OldestLive)
	}
	rows.add("live", stock.Live, "-", stock.LiveBytes, since, "-")
	if !stock.Summed.IsZero() {
		note := "profit and loss up to " + text.Moment(stock.Summed) + " stands as sums of days"
		if err := out.note(note); err != nil {
			return err
		}
	}
	return out.table(rows)
}

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
