// Command recordings judges recordings of event logs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"perpkeeper/lab/recordings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := recordings.Command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
