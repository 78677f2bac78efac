package keeperctl

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
)

// prepare creates the topics that are missing and brings the schema up to this build's version. Doing it again changes
// nothing. What is away is waited for, and what stays away has kept the work from being done.
func prepare(ctx context.Context, s *session, _ []string) error {
	if err := s.prepareTopics(ctx); err != nil {
		return fmt.Errorf("preparing the topics on %v: %w", s.Kafka.Brokers, err)
	}
	if err := s.prepareSchema(ctx); err != nil {
		return fmt.Errorf("preparing the database: %w", err)
	}
	return sayf(s.out, "the topics of chain %d and the database's schema are as this build needs them\n",
		s.Keeper.ChainID)
}

func (s *session) prepareTopics(ctx context.Context) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	specs := bus.Specs(s.Keeper.Topics()...)
	for i := range specs {
		specs[i].Replication = s.Own.Replication
	}
	return client.Ensure(ctx, specs)
}

// prepareSchema also gives each process a role of its own, if there are passwords for them.
func (s *session) prepareSchema(ctx context.Context) error {
	db, err := s.unasked(ctx)
	if err != nil {
		return err
	}
	policy := retry.Policy{Initial: 200 * time.Millisecond, Max: 2 * time.Second}
	if err := retry.Do(ctx, policy,
		func(ctx context.Context) error { return pg.Lasting(db.Migrate(ctx)) }); err != nil || !s.Own.Roles.IsSet() {
		return err
	}
	return db.Grant(ctx, s.Own.Roles)
}
