// Package recordings judges recordings of event logs, with the code that keeps a keeper's state: the state they leave,
// verdicts on positions, what swaps give, and the gas of executions.
package recordings

import "github.com/spf13/cobra"

// Command is the command line.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use: "recordings", Short: "judge recordings of event logs", SilenceErrors: true, SilenceUsage: true,
	}
	root.AddCommand(foldCommand(), gasCommand())
	return root
}
