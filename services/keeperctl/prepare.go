package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
	var specs []bus.TopicSpec
	for _, t := range cfg.Keeper.Topics() {
		settings := map[string]string{"cleanup.policy": "delete", "retention.ms": retention(t.Retention), "retention.bytes": "-1"}
		if copies := cfg.Own.Replication; copies > 0 {
			settings["min.insync.replicas"] = strconv.Itoa(inSync(copies))
		}
		specs = append(specs, bus.TopicSpec{Name: t.Name, Partitions: t.Partitions, Replication: cfg.Own.Replication, Config: settings})
	}
	return client.Ensure(ctx, specs)
}

// inSync is how many copies must have a record before it counts as written: all but one, so that one broker may be away and none of what was acknowledged
// stands on one alone.
func inSync(copies int) int { return max(1, copies-1) }

func retention(d time.Duration) string {
	if d == 0 {
		return "-1"
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
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
