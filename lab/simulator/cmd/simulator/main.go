// Command simulator plays keepers through a scenario in simulated time, and says whether it comes out as expected.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"perpkeeper/lab/simulator"
)

// simulation is the options of the command.
type simulation struct {
	policy     string
	seeds      int
	transcript string
}

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
	s := &simulation{}
	cmd := &cobra.Command{
		Use:   "simulator SCENARIO",
		Short: "play keepers through a scenario in simulated time, and say whether it comes out as expected",
		Args:  cobra.ExactArgs(1), SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.run(cmd.Context(), args[0], out)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.policy, "policy", "", "windows or delay, whatever the scenario says")
	flags.IntVar(&s.seeds, "seeds", 0, "how many plays make a result, whatever the scenario says")
	flags.StringVar(&s.transcript, "transcript", "", "where to write the transcript of the first seed's play; - is "+
		"standard output")
	return cmd
}

// run plays and prints. Where anything is not as the scenario expects it, that is an error.
func (s *simulation) run(ctx context.Context, path string, out io.Writer) error {
	scenario, err := simulator.Load(path)
	if err != nil {
		return err
	}
	result, err := simulator.Run(ctx, s.adapted(scenario), s.transcript != "")
	if err != nil {
		return err
	}
	if err := s.transcribe(result.Plays[0], out); err != nil {
		return err
	}
	if err := result.Write(out); err != nil {
		return err
	}
	if misses := len(result.Misses()); misses > 0 {
		return fmt.Errorf("%s: %d expectations are not met", scenario.Name, misses)
	}
	return nil
}

// adapted is the scenario with what the command line changes.
func (s *simulation) adapted(scenario simulator.Scenario) simulator.Scenario {
	if s.policy != "" {
		scenario.Tier.Policy = s.policy
	}
	if s.seeds != 0 {
		scenario.Seeds = s.seeds
	}
	return scenario
}

// transcribe writes a play down, if that was asked for.
func (s *simulation) transcribe(p simulator.Play, out io.Writer) (err error) {
	switch s.transcript {
	case "":
		return nil
	case "-":
	default:
		file, err := os.Create(s.transcript)
		if err != nil {
			return fmt.Errorf("writing the transcript: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	for _, line := range p.Transcript {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return fmt.Errorf("writing the transcript: %w", err)
		}
	}
	return nil
}
