package devnet

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// command is what can be told to a running devnet: a devnet method and the flags that make its argument.
type command struct {
	name, method, about string
	flags               func(*flag.FlagSet) func() any
}

var commands = []command{
	{"shock", "devnet_shock", "move a price at once", func(f *flag.FlagSet) func() any {
		token, percent := f.String("token", "WETH", "symbol of the token"),
			f.String("percent", "", "how far, such as -20 or 7.5")
		return func() any { return map[string]any{"token": *token, "percent": *percent} }
	}},
	{"pin", "devnet_pin", "keep a price where it is put", func(f *flag.FlagSet) func() any {
		token, usd := f.String("token", "WETH", "symbol of the token"),
			f.String("usd", "", "dollars for a whole token, such as 2500.50")
		return func() any { return map[string]any{"token": *token, "usd": *usd} }
	}},
	{"unpin", "devnet_unpin", "let a pinned price move again", func(f *flag.FlagSet) func() any {
		token := f.String("token", "WETH", "symbol of the token")
		return func() any { return map[string]any{"token": *token} }
	}},
	{"reorg", "devnet_reorg", "replace the newest blocks", func(f *flag.FlagSet) func() any {
		depth, style := f.Uint64("depth", 1, "how many blocks"),
			f.String("style", "replay", "replay: transactions come again; drop: they vanish")
		final := f.Bool("final", false, "replace final blocks too, which no honest chain does: keepers stop and ask "+
			"for the operator")
		return func() any { return map[string]any{"depth": *depth, "style": *style, "final": *final} }
	}},
	{"stall", "devnet_stall", "stop the head for a while", func(f *flag.FlagSet) func() any {
		seconds := f.Float64("seconds", 10, "how long")
		return func() any { return map[string]any{"seconds": *seconds} }
	}},
	{"payment-lane", "devnet_paymentLane", "keep a part of every block for payments, or none with --percent=0",
		func(f *flag.FlagSet) func() any {
			percent := f.Uint64("percent", 5, "how much of the block's gas")
			return func() any { return map[string]any{"percent": *percent} }
		}},
	{"trade", "devnet_trade", "let the traders trade, or rest with --on=false", func(f *flag.FlagSet) func() any {
		on := f.Bool("on", true, "whether they trade")
		return func() any { return map[string]any{"on": *on} }
	}},
	{"upgrade", "devnet_upgrade", "put new handlers beside the old ones, which keep their roles until retire",
		func(f *flag.FlagSet) func() any {
			to := f.String("contracts", "v2.2c", "version: v2.2b or v2.2c")
			return func() any { return map[string]any{"contracts": *to} }
		}},
	{"retire", "devnet_retire", "take the roles from the handlers of before the upgrade",
		func(*flag.FlagSet) func() any { return nil }},
	{"role", "devnet_role", "give a keeper's role to an account, or take it with --holds=false",
		func(f *flag.FlagSet) func() any {
			account, role := f.String("account", "", "address of the account"),
				f.String("role", "ORDER_KEEPER", "name of the role")
			holds := f.Bool("holds", true, "whether it holds the role from now on")
			return func() any { return map[string]any{"account": *account, "role": *role, "holds": *holds} }
		}},
	{"announce", "devnet_announce", "emit an event of administration that keepers do not know",
		func(f *flag.FlagSet) func() any {
			name := f.String("name", "WorkflowExecuted", "name of the event")
			return func() any { return map[string]any{"name": *name} }
		}},
	{"stall-finality", "devnet_stallFinality", "keep safe and finalized where they are",
		func(*flag.FlagSet) func() any { return nil }},
	{"resume", "devnet_resume", "end every stall", func(*flag.FlagSet) func() any { return nil }},
}

// Usage lists the commands in one line.
func Usage() string {
	names := make([]string, 0, len(commands))
	for _, c := range commands {
		names = append(names, c.name)
	}
	return strings.Join(names, "|")
}

const commandTimeout = 30 * time.Second

// errUsage marks a command line that cannot be understood; the reason has been printed.
var errUsage = errors.New("bad command line")

// Command tells a running devnet what args say (a command and its flags) and prints its answer. It returns the exit
// code: 0, 1 if the devnet refused or was not reached, 2 if the command line is wrong.
func Command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := execute(ctx, args, stdout, stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	_, _ = fmt.Fprintf(stderr, "devnet %s: %v\n", args[0], err)
	return 1
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	at := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	if at < 0 {
		_, _ = fmt.Fprintf(stderr, "devnet: no command %q (there are %s)\n", args[0], Usage())
		return errUsage
	}
	c := commands[at]
	flags := flag.NewFlagSet("devnet "+c.name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("rpc", "http://127.0.0.1:8545", "where the devnet answers JSON-RPC")
	argument := c.flags(flags)
	if err := flags.Parse(args[1:]); err != nil {
		return errors.Join(errUsage, err)
	}
	if flags.NArg() > 0 {
		_, _ = fmt.Fprintf(stderr, "devnet %s: unexpected argument %q\n", c.name, flags.Arg(0))
		return errUsage
	}
	var params []any
	if argument != nil {
		params = append(params, argument())
	}
	return tell(ctx, *url, c.method, params, stdout)
}

// tell calls a method of a running devnet and prints its answer as JSON.
func tell(ctx context.Context, url, method string, params []any, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	client, err := rpc.DialContext(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", url, err)
	}
	defer client.Close()
	var answer json.RawMessage
	if err := client.CallContext(ctx, &answer, method, params...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n", answer)
	return err
}
