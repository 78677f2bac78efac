package keeperctl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/operator/status"
)

// healthCommand asks a process for its readiness: the health check of an image that holds no other program.
func healthCommand(cmd *cobra.Command) runner {
	url := cmd.Flags().String("url", "http://127.0.0.1:8080/readyz", "readiness page of the process")
	return func(ctx context.Context, s *session, _ []string) error { return health(ctx, *url, s.out) }
}

func health(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer, code, err := status.Get(ctx, url)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	if code != http.StatusOK {
		return fmt.Errorf("not ready: %s", strings.TrimSpace(answer))
	}
	return sayf(out, "%s", answer)
}
