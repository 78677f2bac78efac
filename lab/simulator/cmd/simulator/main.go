// Command simulator plays keepers through a scenario in simulated time, and says whether it comes out as expected.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"perpkeeper/lab/simulator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(os.Stdout).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(out io.Writer) *cobra.Command {
	var seeds int
	var transcript bool
	cmd := &cobra.Command{
		Use:   "simulator SCENARIO",
		Short: "play keepers through a scenario in simulated time, and say whether it comes out as expected",
		Args:  cobra.ExactArgs(1), SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), args[0], seeds, transcript, out)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&seeds, "seeds", 0, "how many plays make a result, whatever the scenario says")
	flags.BoolVar(&transcript, "transcript", false, "write the play of the first seed line by line before the result")
	return cmd
}

// run plays and prints. Where anything is not as the scenario expects it, that is an error.
func run(ctx context.Context, path string, seeds int, transcript bool, out io.Writer) error {
	scenario, err := simulator.Load(path)
	if err != nil {
		return err
	}
	if seeds != 0 {
		scenario.Seeds = seeds
	}
	result, err := simulator.Run(ctx, scenario, transcript)
	if err != nil {
		return err
	}
	for _, line := range result.Plays[0].Transcript {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return fmt.Errorf("writing the transcript: %w", err)
		}
	}
	if err := result.Write(out); err != nil {
		return err
	}
	if misses := len(result.Misses()); misses > 0 {
		return fmt.Errorf("%s: %d expectations are not met", scenario.Name, misses)
	}
	return nil
}
