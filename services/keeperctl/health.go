package keeperctl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
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
	_, err = fmt.Fprint(out, string(text))
	return err
}
