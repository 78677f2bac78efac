package keeperctl

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/service"
)

func version(_ context.Context, s *session, _ []string) error {
	_, err := fmt.Fprintln(s.out, service.ReadBuild(program))
	return err
}

const exitCodes = "exit codes: 0 fine, or done; 1 findings, or refused or failed; 2 a command line or configuration " +
	"that makes no sense, or nobody could be asked\n"

// helpCommand explains one command, or all.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "explain a command", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(args) > 0 && cmd == root || len(rest) > 0 {
				return usagef("unknown command %q; try keeperctl help", strings.Join(args, " "))
			}
			return cmd.Help()
		},
	}
}

func helpOf(cmd *cobra.Command) string {
	var b strings.Builder
	if !cmd.HasParent() {
		b.WriteString("usage: keeperctl <command> [flags]\n")
		for _, g := range groups {
			fmt.Fprintf(&b, "\n%s:\n", g.title)
			listCommands(&b, cmd, g.id)
		}
		b.WriteString("\nkeeperctl <command> -h explains a command and its flags; keeperctl completion makes a " +
			"shell complete them.\n" + exitCodes)
		return b.String()
	}
	fmt.Fprintf(&b, "%s: %s\n\nusage: %s [flags]\n", cmd.CommandPath(), cmd.Short, cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n")
		listCommands(&b, cmd, "")
	}
	if flags := cmd.LocalNonPersistentFlags().FlagUsages(); flags != "" {
		b.WriteString("\n" + flags)
	}
	if settings := cmd.LocalFlags().Lookup("config"); settings != nil && cmd.PersistentFlags().Lookup("config") != nil {
		fmt.Fprintf(&b, "\nSettings can be given in a file (--config, else PERPKEEPER_CONFIG), in the environment "+
			"or as flags; a flag wins over the environment, the "+
			"environment over the file.\nThe name of a variable is that of the setting: --keeperctl.limit is "+
			"PERPKEEPER_KEEPERCTL_LIMIT.\n\n%s",
			cmd.PersistentFlags().FlagUsages())
	} else if cmd.InheritedFlags().Lookup("config") != nil {
		fmt.Fprintf(&b, "\n%s -h lists the settings.\n", cmd.Parent().CommandPath())
	}
	return b.String()
}

func listCommands(b *strings.Builder, of *cobra.Command, group string) {
	width := 0
	for _, c := range of.Commands() {
		width = max(width, len(c.Use))
	}
	if group != "" {
		width = 12
	}
	for _, c := range of.Commands() {
		if c.GroupID != group || !c.IsAvailableCommand() && c.Name() != "help" {
			continue
		}
		name := c.Use
		if group != "" {
			name = c.Name()
		}
		fmt.Fprintf(b, "  %-*s  %s\n", width, name, c.Short)
	}
}
