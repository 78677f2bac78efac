package keeperctl

import (
	"context"
	"time"

	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/outbox"
	"perpkeeper/pkg/retention"
)

// archive shows where the arms of jobs are that have ended.
func archive(ctx context.Context, db *pg.DB, _ Settings, args []string, out printer) error {
	if len(args) > 0 {
		return usagef("usage: keeperctl archive")
	}
	stock, err := outbox.NewArchive(db).Stock(ctx)
	if err != nil {
		return err
	}
	return printStock(stock, out)
}

func printStock(stock retention.Stock, out printer) error {
	rows := newTable("where", "arms", "transactions", "bytes", "since", "dropped")
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
		said := "profit and loss up to " + text.Moment(stock.Summed) + " stands as sums of days"
		if err := out.note(said); err != nil {
			return err
		}
	}
	return out.table(rows)
}
