package keeperctl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/retry"
)

// healthCommand asks a process for its readiness: the health check of an image that holds no other program.
func healthCommand(cmd *cobra.Command) runner {
	url := cmd.Flags().String("url", "http://127.0.0.1:8080/readyz", "readiness page of the process")
	return func(ctx context.Context, s *session, _ []string) error { return health(ctx, *url, s.out) }
}

func health(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usagef("%q is no address: %w", url, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", strings.TrimSpace(string(text)))
	}
	return sayf(out, "%s", text)
}

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
	return printHealth(ctx, s, kafkaPart, func(ctx context.Context) (string, error) {
		brokers, err := client.Reach(ctx)
		return fmt.Sprintf("%d of %d brokers answer", brokers, brokers), err
	})
}

// postgresHealth asks the database, and whether this build can work with it.
func postgresHealth(ctx context.Context, s *session, _ []string) error {
	db, err := s.unasked(ctx)
	if err != nil {
		return err
	}
	return printHealth(ctx, s, postgresPart, func(ctx context.Context) (string, error) {
		return "the database answers, and has the schema of this build", db.CheckSchema(ctx)
	})
}

func printHealth(ctx context.Context, s *session, part string, ask func(context.Context) (string, error)) error {
	answer, err := askUntil(ctx, s.Own.Wait, ask)
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return sayf(s.out, "%s: %s\n", part, answer)
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
