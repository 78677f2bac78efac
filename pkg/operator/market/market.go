// Package market reads a venue's prices from the price topic: of each token the newest report of every source
// that served it of late, and the mode that the prices' movement calls for (LIQ-1).
//
// Guaranteed: nothing but what the topic holds, so that everybody is shown the same. Not guaranteed: that a planner is
// in the mode; it looks at markets' index tokens alone, and leaves a mode one step at a time.
package market

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/liquidation"
)

// Price is the newest report that a source gave of a token.
type Price struct {
	price.Report

	Reports int  // of this source and token within the window
	Newest  bool // of all sources of the token: the one that is judged with
	// Spread is (max − min) / min of the report, and Off by how much its minimum differs from the newest report's of
	// the token, over the latter; both as 30-decimal factors.
	Spread, Off chain.Uint
	// Moved is (max − min) / min of the token's minimum prices within the window, of all sources, as a 30-decimal
	// factor.
	Moved chain.Uint
}

// Look is what the topic holds of a window of time.
type Look struct {
	Mode   liquidation.Mode
	Prices []Price // by token, the newest of each first
	Tokens int
}

// Read reads the reports that came within the window before now.
func Read(ctx context.Context, client *bus.Client, chainID uint64, window time.Duration, now time.Time) (Look, error) {
	var reports []price.Report
	err := Each(ctx, client, chainID, now.Add(-window), func(r price.Report) { reports = append(reports, r) })
	if err != nil {
		return Look{}, err
	}
	return sum(reports, window), nil
}

// Each hands out the reports that the topic got since a time, in its order, up to the newest there is now. What nobody
// can read or judge with is passed over, as planners do.
func Each(ctx context.Context, client *bus.Client, chainID uint64, since time.Time, take func(price.Report)) error {
	topic := wire.PriceTopic(chainID)
	offset, err := client.OffsetAt(ctx, topic, 0, since)
	if err != nil {
		return fmt.Errorf("looking for price reports: %w", err)
	}
	for r, err := range client.Scan(ctx, topic, 0, offset) {
		if err != nil {
			return fmt.Errorf("reading price reports: %w", err)
		}
		if m, _, err := wire.Decode(r); err == nil {
			message, is := m.(wire.Price)
			if report := price.FromMessage(message); is && report.Validate() == nil {
				take(report)
			}
		}
	}
	return nil
}

// extent is how far a token's price has moved.
type extent struct{ low, high chain.Uint }

// serving names a source of a token.
type serving struct {
	token  chain.Address
	source string
}

// sum is a look at valid reports, which may be in any order.
func sum(reports []price.Report, window time.Duration) (l Look) {
	reports = slices.Clone(reports)
	slices.SortStableFunc(reports, func(a, b price.Report) int {
		return int(int64(a.TimeMs) - int64(b.TimeMs))
	})
	modes := liquidation.NewModes(window)
	of, newest, moved := map[serving]*Price{}, map[chain.Address]price.Report{}, map[chain.Address]extent{}
	for _, r := range reports {
		modes.Observe(r.Token, r.Min, r.TimeMs)
		newest[r.Token] = r
		e, known := moved[r.Token]
		if !known {
			e.low = r.Min
		}
		moved[r.Token] = extent{e.low.Min(r.Min), e.high.Max(r.Min)}
		id := serving{r.Token, r.Source}
		if of[id] == nil {
			of[id] = &Price{}
		}
		of[id].Report = r
		of[id].Reports++
	}
	if len(reports) > 0 {
		l.Mode = modes.Mode(reports[len(reports)-1].TimeMs)
	}
	for _, p := range of {
		best := newest[p.Token]
		e := moved[p.Token]
		p.Newest = p.Source == best.Source
		p.Spread = p.Max.Sub(p.Min).MulDiv(perp.One, p.Min)
		p.Off = p.Min.Max(best.Min).Sub(p.Min.Min(best.Min)).MulDiv(perp.One, best.Min)
		p.Moved = e.high.Sub(e.low).MulDiv(perp.One, e.low)
		l.Prices = append(l.Prices, *p)
	}
	slices.SortFunc(l.Prices, byToken)
	l.Tokens = len(newest)
	return l
}

func byToken(a, b Price) int {
	older := map[bool]int{false: 1} // by whether a report is the newest
	return cmp.Or(bytes.Compare(a.Token[:], b.Token[:]), older[a.Newest]-older[b.Newest],
		strings.Compare(a.Source, b.Source))
}
