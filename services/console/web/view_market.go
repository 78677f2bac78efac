package web

import (
	"context"
	"net/url"
	"time"

	"perpkeeper/pkg/operator/market"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/risk/liquidation"
)

// marketView is what the price topic holds, and the scanner's status of its sources.
type marketView struct {
	market.Look

	Window   time.Duration
	Oldest   time.Duration // age of the oldest of the tokens' newest reports
	Rows     []priceRow
	Sources  []status.PriceSource
	Planners []plannerMode
	Problems []string // of processes that could not be asked
}

// priceRow is a token's newest report of a source, as people read it.
type priceRow struct {
	market.Price

	USD, Spread, Off, Moved string
	Age                     time.Duration
	Delay                   time.Duration // until the scanner had it
	Old                     bool          // too old to be judged with
}

// plannerMode is a planner's mode, as its metrics show it.
type plannerMode struct {
	Process string
	Mode    liquidation.Mode
}

func (c *console) market(ctx context.Context, _ url.Values) (any, error) {
	now := c.Now()
	look, err := market.Read(ctx, c.Kafka, c.Keeper.ChainID, c.VolatilityWindow, now)
	if err != nil {
		return nil, err
	}
	v := marketView{Look: look, Window: c.VolatilityWindow}
	for _, p := range look.Prices {
		row := c.priceRow(p, now)
		v.Rows = append(v.Rows, row)
		if p.Newest {
			v.Oldest = max(v.Oldest, row.Age)
		}
	}
	c.askPrices(ctx, &v)
	return v, nil
}

func (c *console) priceRow(p market.Price, now time.Time) priceRow {
	row := priceRow{Price: p, Spread: text.Percent(p.Spread), Off: text.Percent(p.Off), Moved: text.Percent(p.Moved),
		Age:   max(now.Sub(time.UnixMilli(int64(p.TimeMs))), 0),
		Delay: time.Duration(p.ReceivedMs-min(p.ReceivedMs, p.TimeMs)) * time.Millisecond}
	row.Old = row.Age > c.PriceMaxAge
	row.USD = c.Names.Price(p.Token, p.Min)
	return row
}

// askPrices asks the processes for what only they know: the sources that the scanner has, and the planner's mode.
func (c *console) askPrices(ctx context.Context, v *marketView) {
	asking, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	for _, p := range c.Processes {
		market, err := status.Market(asking, p.URL)
		if err != nil {
			v.Problems = append(v.Problems, p.Name+" could not be asked: "+err.Error())
			continue
		}
		v.Sources = append(v.Sources, market.Sources...)
		if market.Mode >= 0 {
			v.Planners = append(v.Planners, plannerMode{p.Name, liquidation.Mode(market.Mode)})
		}
	}
}

// processTimeout is what asking the keeper's processes may take of a page's time.
const processTimeout = time.Second
