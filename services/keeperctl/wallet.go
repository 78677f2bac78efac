package keeperctl

import (
	"context"
	"fmt"
	"strings"

	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
)

// wallets shows what agents have earned, in wei, and proves that the balances are the sums of their entries.
func wallets(ctx context.Context, db *pg.DB, own Settings, args []string, out printer) error {
	d := walletCommands{db.Wallets(), own.Limit, out}
	return verbs{"list": d.list, "ledger": d.ledger, "verify": d.verify}.do(ctx, "wallet", args)
}

// walletCommands is one invocation of the command.
type walletCommands struct {
	pg.Wallets

	limit int
	out   printer
}

func (d walletCommands) list(ctx context.Context, _ []string) error {
	all, err := d.List(ctx)
	if err != nil {
		return err
	}
	rows := newTable("agent", "balance", "frozen", "changed")
	rows.empty = noWallets
	for _, one := range all {
		rows.add(one.Agent, one.Balance, one.Frozen, text.Moment(one.UpdatedAt))
	}
	return d.out.table(rows)
}

// noWallets is what there is to say before the first agent has earned something.
const noWallets = "no wallets: no fee was booked for an agent of commission.agents yet"

func (d walletCommands) ledger(ctx context.Context, args []string) error {
	entries, err := d.Ledger(ctx, args[0], d.limit)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("agent %q has no entries (keeperctl wallet list shows the agents)", args[0])
	}
	rows := newTable("id", "at", "what", "balance", "frozen", "commission")
	for _, e := range entries {
		rows.add(e.ID, text.Moment(e.At), e.What, e.BalanceDelta, e.FrozenDelta, e.Source)
	}
	return d.out.table(rows)
}

func (d walletCommands) verify(ctx context.Context, _ []string) error {
	audits, err := d.Verify(ctx)
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
	case d.out.json:
		err = d.out.table(rows)
	case len(audits) == 0:
		err = d.out.note(noWallets)
	default:
		err = d.out.either(nil, text.String())
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
