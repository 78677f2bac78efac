package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/pnl"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
)

// mostPnlDays is ten years.
const mostPnlDays = 3650

// pnlCommand shows what the keeper's signers earned and spent, and with --check holds it against their balances.
func pnlCommand(cmd *cobra.Command) runner {
	by := cmd.Flags().String("by", string(pnl.ByKind), "a line for each kind of job, signer or market")
	check := cmd.Flags().Bool("check", false, "ask the chain for the signers' balances at both ends of the range, and "+
		"show what is neither a fee nor gas")
	return func(ctx context.Context, s *session, args []string) error {
		period, err := wantedPeriod(args)
		if err != nil {
			return err
		}
		dimension, err := pnl.ParseDimension(*by)
		if err != nil {
			return usagef("--by: %w", err)
		}
		db, err := s.database(ctx)
		if err != nil {
			return err
		}
		return s.profitAndLoss(ctx, db, period, dimension, *check)
	}
}

func wantedPeriod(args []string) (time.Duration, error) {
	switch {
	case len(args) == 0:
		return pnl.Period("day"), nil
	case len(args) == 1 && pnl.Period(args[0]) > 0:
		return pnl.Period(args[0]), nil
	case len(args) == 1:
		count, whole := strings.CutSuffix(args[0], "d")
		if days, err := strconv.Atoi(count); whole && err == nil && days > 0 && days <= mostPnlDays {
			return time.Duration(days) * pnl.Period("day"), nil
		}
	}
	return 0, usagef("usage: keeperctl pnl [%s|DAYSd], such as 365d (%d days at most)",
		strings.Join(pnl.Periods(), "|"), mostPnlDays)
}

func (s *session) profitAndLoss(ctx context.Context, db *pg.DB, period time.Duration, by pnl.Dimension,
	check bool) error {
	statement, err := txstore.NewArchive(db).ProfitAndLoss(ctx, period)
	if err != nil {
		return err
	}
	var balances balanceSource
	if check {
		node, err := s.node(ctx)
		if err != nil {
			return err
		}
		balances = node
	}
	var names *naming.Names
	if by == pnl.ByMarket {
		names = s.names(ctx, db)
	}
	return printStatement(ctx, s.out, names, statement, by, balances)
}

// balanceSource is what profit and loss asks of the chain.
type balanceSource interface {
	BalanceAt(ctx context.Context, account chain.Address, number uint64) (chain.Uint, error)
}

// printStatement prints the lines of a statement, and the accounts that they come from where there is somebody to ask
// for their balances. It fails where the figures cannot be whole.
func printStatement(ctx context.Context, out printer, names *naming.Names, s pnl.Statement, by pnl.Dimension,
	chain balanceSource) error {
	lines, accounts := pnlLines(out, names, s, by), (*table)(nil)
	if chain != nil && s.First > 0 {
		var err error
		if accounts, err = pnlAccounts(ctx, out, s, chain); err != nil {
			return notAsked(err)
		}
	}
	var err error
	if out.json {
		document := pnlDocument{First: s.First, Last: s.Last, SinceMs: s.SinceMs, UntilMs: s.UntilMs,
			Generation: s.Generation, Lines: lines.records()}
		if accounts != nil {
			document.Accounts = accounts.records()
		}
		err = out.object(document)
	} else {
		err = printPnlTables(out, s, lines, accounts)
	}
	if found := s.Findings(); len(found) > 0 {
		err = errors.Join(err, errors.New(strings.Join(found, "; ")))
	}
	return err
}

// pnlDocument is what programs read.
type pnlDocument struct {
	First      uint64   `json:"firstBlock"`
	Last       uint64   `json:"lastBlock"`
	SinceMs    uint64   `json:"sinceMs"`
	UntilMs    uint64   `json:"untilMs"`
	Generation int      `json:"generation"`
	Lines      []record `json:"lines"` // the last is the total
	Accounts   []record `json:"accounts,omitempty"`
}

// money is an amount of wei: for people in coins, for programs as it is.
func (p printer) money(wei any) any {
	switch amount := wei.(type) {
	case chain.Uint:
		if !p.json {
			return text.BNB(amount)
		}
	case chain.Int:
		if !p.json {
			return text.SignedBNB(amount)
		}
	}
	return wei
}

func pnlLines(out printer, names *naming.Names, s pnl.Statement, by pnl.Dimension) *table {
	rows := newTable(string(by), "transactions", "lost", "freed", "fees", "gas", "lost gas", "freed gas", "net")
	for _, l := range append(s.By(by), s.Total()) {
		rows.add(names.In(l.Name), l.Transactions, l.Lost, l.Freed, out.money(l.Fees), out.money(l.Gas),
			out.money(l.LostGas), out.money(l.FreedGas), out.money(l.Net()))
	}
	return rows
}

// pnlAccounts holds each signer's line against its balances: before the first block, and after the last.
func pnlAccounts(ctx context.Context, out printer, s pnl.Statement, chain balanceSource) (*table, error) {
	rows := newTable("signer", "balance before", "net", "moved", "balance after", "booked")
	for _, a := range s.Accounts {
		before, err := chain.BalanceAt(ctx, a.Signer, s.First-1)
		if err != nil {
			return nil, err
		}
		after, err := chain.BalanceAt(ctx, a.Signer, s.Last)
		if err != nil {
			return nil, err
		}
		own := s.Of(a.Signer)
		rows.add(a.Signer, out.money(before), out.money(own.Net()), out.money(a.Moved(before, after, own)),
			out.money(after), out.money(a.Booked))
	}
	return rows, nil
}

func printPnlTables(out printer, s pnl.Statement, lines, accounts *table) error {
	at := func(ms uint64) string { return time.UnixMilli(int64(ms)).UTC().Format(time.DateTime) }
	note := fmt.Sprintf("from %s to %s UTC; final blocks %d to %d; cut to six decimals (-o json has wei)",
		at(s.SinceMs), at(s.UntilMs), s.First, s.Last)
	if s.First == 0 {
		note = fmt.Sprintf("no signer of this keeper did anything from %s to %s UTC", at(s.SinceMs), at(s.UntilMs))
	}
	if err := out.note(note); err != nil {
		return err
	}
	if err := out.table(lines); err != nil || accounts == nil {
		return err
	}
	if err := out.note("\nmoved is what was sent to a signer, less what was sent away; booked is what the ledger has " +
		"of the fees (keeperctl wallet verify)"); err != nil {
		return err
	}
	return out.table(accounts)
}
