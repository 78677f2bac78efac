package keeperctl

import (
	"context"
	"fmt"

	"perpkeeper/pkg/pg"
)

// wallets shows what agents have earned, in wei, and proves that the balances are the sums of their entries.
func wallets(ctx context.Context, db *pg.DB, _ Settings, args []string, out printer) error {
	return verbs{"verify": func(ctx context.Context, _ []string) error {
		audits, err := db.Wallets().Verify(ctx)
		if err != nil {
			return err
		}
		return printWallets(audits, out)
	}}.do(ctx, "wallet", args)
}

func printWallets(audits []pg.Audit, out printer) error {
	rows := newTable("agent", "sound", "balance", "entries", "fees released", "frozen", "frozen entries", "fees held")
	rows.empty = "no wallets: no fee was booked for an agent of commission.agents yet"
	wrong := 0
	for _, a := range audits {
		if !a.Sound() {
			wrong++
		}
		rows.add(a.Agent, a.Sound(), a.Balance, a.EntryBalance, a.Earned.Sub(a.Held), a.Frozen, a.EntryFrozen, a.Held)
	}
	if err := out.table(rows); err != nil || wrong == 0 {
		return err
	}
	return fmt.Errorf("%d of %d wallets do not add up (the entries are the truth: table keeper.wallet_entry)", wrong,
		len(audits))
}
