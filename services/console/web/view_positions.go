package web

import (
	"context"
	"errors"
	"html/template"
	"net/url"
	"time"

	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/operator/whynot"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/services/console/exposure"
)

// positionsView is what stands near liquidation.
type positionsView struct {
	exposure.Ranking

	Waiting string // why there is no ranking yet
	Ago     time.Duration
	Rows    []positionRow
	Bars    []bar
	Risk    template.HTML
}

// positionRow is a position with its figures as people read them.
type positionRow struct {
	exposure.Position
	Side, Size, Distance, Ratio string
}

// bar is one of the chart of sizes by distance.
type bar struct {
	Name, Size string
	Positions  int
	Share      uint64 // percent of the widest
}

func (c *console) positions(ctx context.Context, _ url.Values) (any, error) {
	r, at, err := c.near.Latest(ctx)
	if errors.Is(err, exposure.ErrNotYet) {
		return positionsView{Waiting: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	v := positionsView{Ranking: r, Ago: c.Now().Sub(at), Bars: barsOf(r.Bands), Risk: c.riskChart(r.Curves)}
	for _, p := range r.Nearest {
		v.Rows = append(v.Rows, positionRow{p, text.Side(p.IsLong), text.USD(p.SizeInUsd), text.Percent(p.Distance),
			text.Percent(p.Ratio)})
	}
	return v, nil
}

func barsOf(bands []exposure.Band) (bars []bar) {
	widest := perp.U64(1)
	for _, b := range bands {
		widest = widest.Max(b.SizeUsd)
	}
	for _, b := range bands {
		name := "within " + perp.U64(b.Within).String() + " %"
		switch {
		case b.Last:
			name = "farther"
		case b.Within == 0:
			name = "due now"
		}
		share, _ := b.SizeUsd.MulDiv(perp.U64(100), widest).Uint64()
		bars = append(bars, bar{name, text.USD(b.SizeUsd), b.Positions, share})
	}
	return bars
}

// present is the moment that a planner would decide at now.
func (c *console) present(ctx context.Context) (*due.Moment, error) {
	board, err := whynot.Reports(ctx, c.Kafka, c.Keeper.ChainID, c.PriceMaxAge)
	if err != nil {
		return nil, err
	}
	return whynot.Present(ctx, c.DB, board, c.Rules, c.PriceMaxAge)
}
