package keeperctl

import (
	"context"
	"fmt"
	"strings"

	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
)

const walletUsage = "wallet list | ledger AGENT | verify"

// wallets shows what agents have earned, in wei, and proves that the balances are the sums of their entries.
func wallets(ctx context.Context, db *pg.DB, own Settings, args []string, out printer) error {
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

func listWallets(ctx context.Context, w pg.Wallets, out printer) error {
	all, err := w.List(ctx)
	if err != nil {
		return err
	}
	rows := newTable("agent", "balance", "frozen", "changed")
	rows.empty = noWallets
	for _, one := range all {
		rows.add(one.Agent, one.Balance, one.Frozen, text.Moment(one.UpdatedAt))
	}
	return out.table(rows)
}

// noWallets is what there is to say before the first agent has earned something.
const noWallets = "no wallets: no fee was booked for an agent of commission.agents yet"

func showLedger(ctx context.Context, w pg.Wallets, agent string, limit int, out printer) error {
	entries, err := w.Ledger(ctx, agent, limit)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("agent %q has no entries (keeperctl wallet list shows the agents)", agent)
	}
	rows := newTable("id", "at", "what", "balance", "frozen", "commission")
	for _, e := range entries {
		rows.add(e.ID, text.Moment(e.At), e.What, e.BalanceDelta, e.FrozenDelta, e.Source)
	}
	return out.table(rows)
}

func verifyWallets(ctx context.Context, w pg.Wallets, out printer) error {
	audits, err := w.Verify(ctx)
	if err != nil {
		return err
	}
	rows := newTable("agent", "sound", "balance", "entries", "fees released", "frozen", "frozen entries", "fees held")
	var text strings.Builder
	wrong := 0
	for _, a := range audits {
		verdict := "adds up"
		if !a.Sound() {
			wrong++
			verdict = "DOES NOT ADD UP"
		}
		released := a.Earned.Sub(a.Held)
		rows.add(a.Agent, a.Sound(), a.Balance, a.EntryBalance, released, a.Frozen, a.EntryFrozen, a.Held)
		fmt.Fprintf(&text, "%s: %s: balance %s (entries %s, fees released %s), frozen %s (entries %s, fees held %s)\n",
			inLine(a.Agent), verdict, a.Balance, a.EntryBalance, released, a.Frozen, a.EntryFrozen, a.Held)
	}
	switch {
	case out.json:
		err = out.table(rows)
	case len(audits) == 0:
		err = out.note(noWallets)
	default:
		err = out.either(nil, text.String())
	}
	if err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d wallets do not add up (the entries are the truth: keeperctl wallet ledger AGENT "+
			"shows them)", wrong, len(audits))
	}
	return nil
}
