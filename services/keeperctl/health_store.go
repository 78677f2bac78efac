package keeperctl

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
)

const (
	kafkaPart, postgresPart = "kafka", "postgres"

	healthPatience = 5 * time.Second // for one question
)

// kafkaHealth asks every broker.
func kafkaHealth(ctx context.Context, s *session, _ []string) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	defer client.Close()
	return tellHealth(ctx, s, kafkaPart, func(ctx context.Context) (string, error) {
		brokers, err := client.Reach(ctx)
		return fmt.Sprintf("%d of %d brokers answer", brokers, brokers), err
	})
}

// postgresHealth asks the database, and whether this build can work with it.
func postgresHealth(ctx context.Context, s *session, _ []string) error {
	db, err := pg.Open(ctx, s.Postgres, program)
	if err != nil {
		return err
	}
	defer db.Close()
	return tellHealth(ctx, s, postgresPart, func(ctx context.Context) (string, error) {
		return "the database answers, and has the schema of this build", db.CheckSchema(ctx)
	})
}

func tellHealth(ctx context.Context, s *session, part string, ask func(context.Context) (string, error)) error {
	answer, err := askUntil(ctx, s.Own.Wait, ask)
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	_, err = fmt.Fprintf(s.out, "%s: %s\n", part, answer)
	return err
}

// askUntil asks until the answer is good or the time is over, whose last error it then returns.
func askUntil(ctx context.Context, wait time.Duration, ask func(context.Context) (string, error)) (answer string,
	err error) {
	end := time.Now().Add(wait)
	tries := retry.New(retry.Policy{Initial: 200 * time.Millisecond, Max: time.Second})
	for tries.Next(ctx) {
		limited, cancel := context.WithTimeoutCause(ctx, healthPatience,
			fmt.Errorf("no answer within %s", healthPatience))
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
