package web

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/pnl"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/txstore"
)

// pnlView is what the keeper's signers earned and spent, added up as keeperctl pnl does it.
type pnlView struct {
	Period, By    string
	Periods       []string
	Dimensions    []pnl.Dimension
	Waiting       string // why there are no figures yet
	Since, Until  time.Time
	First, Last   uint64   // blocks
	Findings      []string // what the figures cannot be trusted for
	Total         pnlLine
	Lines         []pnlLine
	ExecutedShare string // of all transactions, in percent
}

// pnlLine is a line as the page shows it.
type pnlLine struct{ pnl.Line }

// Hex reports whether the line is named by an address.
func (l pnlLine) Hex() bool { return strings.HasPrefix(l.Name, "0x") }

// Loses reports whether less was earned than spent.
func (l pnlLine) Loses() bool { return l.Net().Sign() < 0 }

func (c *console) pnl(ctx context.Context, ask url.Values) (any, error) {
	v := pnlView{Period: ask.Get("period"), By: ask.Get("by"), Periods: pnl.Periods(), Dimensions: pnl.Dimensions()}
	if v.Period == "" {
		v.Period = v.Periods[0]
	}
	if v.By == "" {
		v.By = string(pnl.ByKind)
	}
	by, err := pnl.ParseDimension(v.By)
	if err != nil {
		return nil, badQuestionError{err}
	}
	if !slices.Contains(v.Periods, v.Period) {
		return nil, badQuestionError{fmt.Errorf("%q is none of %q", v.Period, v.Periods)}
	}
	progress, err := c.DB.Progress(ctx)
	if err != nil {
		return nil, err
	}
	if progress.Finalized().Hash.IsZero() {
		v.Waiting = "Only what is final is counted, and no block of the state is final yet"
		return v, nil
	}
	s, err := txstore.NewArchive(c.DB).ProfitAndLoss(ctx, pnl.Period(v.Period))
	if err != nil {
		return nil, err
	}
	v.add(s, by)
	return v, nil
}

func (v *pnlView) add(s pnl.Statement, by pnl.Dimension) {
	v.Since, v.Until = time.UnixMilli(int64(s.SinceMs)), time.UnixMilli(int64(s.UntilMs))
	v.First, v.Last, v.Findings = s.First, s.Last, s.Findings()
	v.Total = pnlLine{s.Total()}
	v.ExecutedShare = "–"
	if n := v.Total.Transactions; n > 0 {
		executed := chain.U64(uint64(n - v.Total.Lost - v.Total.Freed))
		v.ExecutedShare = text.Percent(executed.MulDiv(perp.One, chain.U64(uint64(n))))
	}
	for _, l := range s.By(by) {
		v.Lines = append(v.Lines, pnlLine{l})
	}
}
