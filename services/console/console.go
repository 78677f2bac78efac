package console

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/wire"
)

// Start acquires what the console needs and hands its members to the shell. Its pages are the shell's, see
// service.Shell.Handle.
func Start(sh *service.Shell, cfg Config) error {
	client, err := bus.New(cfg.Kafka, sh.Log, bus.NewMetrics(sh.Registry))
	if err != nil {
		return fmt.Errorf("preparing the kafka client: %w", err)
	}
	sh.OnStop("kafka", func(context.Context) error { client.Close(); return nil })
	db, err := pg.Open(sh.Context(), cfg.Postgres, sh.Name)
	if err != nil {
		return fmt.Errorf("opening postgres: %w", err)
	}
	sh.OnStop("postgres", func(context.Context) error { db.Close(); return nil })
	sh.Watch("kafka", func(context.Context) error { return client.Health() })
	sh.Watch("postgres", db.Health)
	work := sh.Ready("work")
	sh.Go("work", func(ctx context.Context) error {
		if err := awaitParts(ctx, cfg.Keeper, client, db, work.Fail); err != nil {
			return err
		}
		work.OK()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	return nil
}

// awaitParts waits for Postgres and Kafka, however long they are away, and fails at once where they are there and
// cannot serve: a schema of another version, a missing topic, another number of partitions.
func awaitParts(ctx context.Context, keeper wire.Config, client *bus.Client, db *pg.DB,
	tell func(reason string)) error {
	policy := retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second,
		OnRetry: func(_ int, err error, _ time.Duration) { tell(err.Error()) }}
	if err := db.AwaitSchema(ctx, policy); err != nil {
		return err
	}
	topics := keeper.Named(wire.ResultTopic(keeper.ChainID), wire.DeadLetterTopic(keeper.ChainID))
	if err := client.Verify(ctx, bus.Specs(topics...)); err != nil {
		return fmt.Errorf("checking the topics (keeperctl prepare creates missing ones): %w", err)
	}
	return nil
}
