package sender

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retention"
	"perpkeeper/pkg/retry"
)

// runArchive moves what has ended out of the way of the road, as soon as the database can be worked with. Every sender
// does; one at a time.
func runArchive(ctx context.Context, cfg Config, db *pg.DB, metrics *Metrics, log zerolog.Logger) error {
	if err := db.AwaitSchema(ctx, retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second,
		Factor: 2}); err != nil {
		return err
	}
	return retention.New(cfg.Retention, db.Archive(), metrics.archive, log).Run(ctx)
}
