// Command keeperctl is the operator's command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"perpkeeper/services/keeperctl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait
	code := keeperctl.Run(ctx, os.Args[1:], keeperctl.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
