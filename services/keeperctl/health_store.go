package keeperctl

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/service"
)

// KafkaHealthConfig is what `keeperctl health kafka` is told.
type KafkaHealthConfig struct {
	Kafka bus.Config     `toml:"kafka"`
	Own   HealthSettings `toml:"keeperctl"`
}

// PostgresHealthConfig is what `keeperctl health postgres` is told.
type PostgresHealthConfig struct {
	Postgres pg.Config      `toml:"postgres"`
	Own      HealthSettings `toml:"keeperctl"`
}

// HealthSettings is its part of the [keeperctl] section.
type HealthSettings struct {
	Wait time.Duration `toml:"wait" help:"how long to go on asking until the answer is good; 0 = ask once"`
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c KafkaHealthConfig) Validate() error { return nil }

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c PostgresHealthConfig) Validate() error { return nil }

// Validate names every setting that cannot work.
func (s HealthSettings) Validate() error {
	if s.Wait < 0 || s.Wait > time.Hour {
		return fmt.Errorf("wait: %s is not between 0s and 1h", s.Wait)
	}
	return nil
}

const (
	kafkaPart, postgresPart = "kafka", "postgres"

	healthPatience = 5 * time.Second // for one question
)

// healthMain is the command for the part that the command line names.
func healthMain(part string) {
	if part == kafkaPart {
		tool("health kafka", KafkaHealthConfig{Kafka: bus.DefaultConfig()}, KafkaHealth)
	}
	tool("health postgres", PostgresHealthConfig{Postgres: pg.DefaultConfig()}, PostgresHealth)
}

// KafkaHealth asks every broker.
func KafkaHealth(sh *service.Shell, cfg KafkaHealthConfig, _ []string) error {
	client, err := bus.New(cfg.Kafka, sh.Log, bus.NewMetrics(sh.Registry))
	if err != nil {
		return err
	}
	defer client.Close()
	return tellHealth(sh.Context(), kafkaPart, cfg.Own.Wait, func(ctx context.Context) (string, error) {
		brokers, err := client.Reach(ctx)
		return fmt.Sprintf("%d of %d brokers answer", brokers, brokers), err
	})
}

// PostgresHealth asks the database, and whether this build can work with it.
func PostgresHealth(sh *service.Shell, cfg PostgresHealthConfig, _ []string) error {
	db, err := pg.Open(sh.Context(), cfg.Postgres, sh.Name)
	if err != nil {
		return err
	}
	defer db.Close()
	return tellHealth(sh.Context(), postgresPart, cfg.Own.Wait, func(ctx context.Context) (string, error) {
		return "the database answers, and has the schema of this build", db.CheckSchema(ctx)
	})
}

func tellHealth(ctx context.Context, part string, wait time.Duration, ask func(context.Context) (string, error)) error {
	answer, err := askUntil(ctx, wait, ask)
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	_, err = fmt.Printf("%s: %s\n", part, answer)
	return err
}

// askUntil asks until the answer is good or the time is over, whose last error it then returns.
func askUntil(ctx context.Context, wait time.Duration, ask func(context.Context) (string, error)) (answer string, err error) {
	end := time.Now().Add(wait)
	tries := retry.New(retry.Policy{Initial: 200 * time.Millisecond, Max: time.Second})
	for tries.Next(ctx) {
		limited, cancel := context.WithTimeoutCause(ctx, healthPatience, fmt.Errorf("no answer within %s", healthPatience))
		answer, err = ask(limited)
		if late := context.Cause(limited); err != nil && late != nil {
			err = late
		}
		cancel()
		if err == nil || time.Now().After(end) {
			return answer, err
		}
		tries.Failed(err)
	}
	return "", context.Cause(ctx)
}
