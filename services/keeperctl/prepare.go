package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/wire"
)

// PrepareConfig is what `keeperctl prepare` is told: the keeper, its Kafka and its database.
type PrepareConfig struct {
	Keeper   wire.Config     `toml:"keeper"`
	Kafka    bus.Config      `toml:"kafka"`
	Postgres pg.Config       `toml:"postgres"`
	Own      PrepareSettings `toml:"keeperctl"`
}

// PrepareSettings is the [keeperctl] section.
type PrepareSettings struct {
	Roles       pg.Passwords  `toml:"roles"`
	Replication int           `toml:"replication" help:"copies of each partition of a topic that has to be created; 0 = the brokers' default"`
	Patience    time.Duration `toml:"patience" help:"how long to wait for brokers and database"`
}

// Validate names every setting that cannot work.
func (s PrepareSettings) Validate() error {
	var problems []error
	if s.Replication < 0 || s.Replication > 10 {
		problems = append(problems, fmt.Errorf("replication: %d is not between 0 and 10", s.Replication))
	}
	if s.Patience < time.Second {
		problems = append(problems, fmt.Errorf("patience: %s is less than 1s", s.Patience))
	}
	return errors.Join(problems...)
}

// DefaultPrepareConfig waits two minutes.
func DefaultPrepareConfig() PrepareConfig {
	return PrepareConfig{
		Keeper: wire.DefaultConfig(), Kafka: bus.DefaultConfig(), Postgres: pg.DefaultConfig(), Own: PrepareSettings{Patience: 2 * time.Minute},
	}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c PrepareConfig) Validate() error { return nil }

// Prepare creates the topics that are missing and brings the schema up to this build's version. Doing it again changes nothing.
func Prepare(sh *service.Shell, cfg PrepareConfig, args []string) error {
	if len(args) > 1 {
		return usagef("unexpected argument %q; usage: keeperctl prepare", args[1])
	}
	ctx, cancel := context.WithTimeoutCause(sh.Context(), cfg.Own.Patience, fmt.Errorf("gave up after %s", cfg.Own.Patience))
	defer cancel()
	if err := prepareTopics(ctx, sh, cfg); err != nil {
		return fmt.Errorf("preparing the topics on %v: %w", cfg.Kafka.Brokers, err)
	}
	if err := prepareSchema(ctx, cfg); err != nil {
		return fmt.Errorf("preparing the database: %w", err)
	}
	_, err := fmt.Printf("the topics of chain %d and the database's schema are as this build needs them\n", cfg.Keeper.ChainID)
	return err
}

func prepareTopics(ctx context.Context, sh *service.Shell, cfg PrepareConfig) error {
	client, err := bus.New(cfg.Kafka, sh.Log, bus.NewMetrics(sh.Registry))
	if err != nil {
		return err
	}
	defer client.Close()
	specs := bus.Specs(cfg.Keeper.Topics()...)
	for i := range specs {
		specs[i].Replication = cfg.Own.Replication
	}
	return client.Ensure(ctx, specs)
}

// prepareSchema also gives each process a role of its own, if there are passwords for them.
func prepareSchema(ctx context.Context, cfg PrepareConfig) error {
	db, err := pg.Open(ctx, cfg.Postgres, "keeperctl")
	if err != nil {
		return err
	}
	defer db.Close()
	policy := retry.Policy{Initial: 200 * time.Millisecond, Max: 2 * time.Second, Factor: 2}
	if err := retry.Do(ctx, policy, func(ctx context.Context) error { return pg.Lasting(db.Migrate(ctx)) }); err != nil || !cfg.Own.Roles.IsSet() {
		return err
	}
	return db.Grant(ctx, cfg.Own.Roles)
}
