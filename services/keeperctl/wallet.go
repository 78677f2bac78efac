package keeperctl

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"perpkeeper/pkg/pg"
)

const walletUsage = "wallet list | ledger AGENT | verify"

// wallets shows what agents have earned, in wei, and proves that the balances are the sums of their entries.
func wallets(ctx context.Context, db *pg.DB, own LedgerSettings, args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "list":
		return listWallets(ctx, db.Wallets(), out)
	case len(args) == 2 && args[0] == "ledger":
		return showLedger(ctx, db.Wallets(), args[1], own.Limit, out)
	case len(args) == 1 && args[0] == "verify":
		return verifyWallets(ctx, db.Wallets(), out)
	}
	return usagef("usage: keeperctl %s", walletUsage)
}

func listWallets(ctx context.Context, w pg.Wallets, out io.Writer) error {
	all, err := w.List(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, noWallets)
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "agent\tbalance\tfrozen\tchanged") // the writer keeps what goes wrong for Flush
	for _, one := range all {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", one.Agent, one.Balance, one.Frozen, moment(one.UpdatedAt))
	}
	return table.Flush()
}

// noWallets is what there is to say before the first agent has earned something.
const noWallets = "no wallets: no fee was booked for an agent of commission.agents yet"

func showLedger(ctx context.Context, w pg.Wallets, agent string, limit int, out io.Writer) error {
	entries, err := w.Ledger(ctx, agent, limit)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("agent %q has no entries (keeperctl wallet list shows the agents)", agent)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "id\tat\twhat\tbalance\tfrozen\tcommission")
	for _, e := range entries {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", e.ID, moment(e.At), e.What, e.BalanceDelta, e.FrozenDelta, e.Source)
	}
	return table.Flush()
}

func verifyWallets(ctx context.Context, w pg.Wallets, out io.Writer) error {
	audits, err := w.Verify(ctx)
	if err != nil {
		return err
	}
	if len(audits) == 0 {
		_, err := fmt.Fprintln(out, noWallets)
		return err
	}
	wrong := 0
	for _, a := range audits {
		verdict := "adds up"
		if !a.Sound() {
			wrong++
			verdict = "DOES NOT ADD UP"
		}
		_, err := fmt.Fprintf(out, "%s: %s: balance %s (entries %s, fees released %s), frozen %s (entries %s, fees held %s)\n",
			a.Agent, verdict, a.Balance, a.EntryBalance, a.Earned.Sub(a.Held), a.Frozen, a.EntryFrozen, a.Held)
		if err != nil {
			return err
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d wallets do not add up (the entries are the truth: keeperctl wallet ledger AGENT shows them)", wrong, len(audits))
	}
	return nil
}
