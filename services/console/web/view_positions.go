package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/operator/whynot"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/services/console/exposure"
)

// positionsView is what stands near liquidation.
type positionsView struct {
	exposure.Ranking

	Waiting string // why there is no ranking yet
	Ago     time.Duration
	Columns []column
	Rows    []positionRow
	Risk    template.HTML
}

// positionRow is a position with its figures as people read them.
type positionRow struct {
	exposure.Position
	Side, Size, Price, Liquidation, Distance, Ratio string
}

// column is a head of the table, and where it leads: to the same sorted by it, or the other way round.
type column struct {
	Name, Href string
	Sorted     string // ascending, descending; empty where it is not sorted by this
	Num        bool
}

// sortings are what positions can be sorted by, by the word in the address. Prices are of different tokens: they sort
// within each market.
var sortings = map[string]func(a, b positionRow) int{
	"position": func(a, b positionRow) int { return slices.Compare(a.PositionKey[:], b.PositionKey[:]) },
	"account":  func(a, b positionRow) int { return slices.Compare(a.Account[:], b.Account[:]) },
	"market":   byMarket,
	"side":     func(a, b positionRow) int { return cmp.Compare(a.Side, b.Side) },
	"size":     func(a, b positionRow) int { return a.SizeInUsd.Cmp(b.SizeInUsd) },
	"price": func(a, b positionRow) int {
		return cmp.Or(byMarket(a, b), a.Position.Price.Cmp(b.Position.Price))
	},
	"liquidation": func(a, b positionRow) int {
		return cmp.Or(byMarket(a, b), a.LiquidationPrice.Cmp(b.LiquidationPrice))
	},
	"distance": func(a, b positionRow) int { return a.Position.Distance.Cmp(b.Position.Distance) },
	"ratio":    func(a, b positionRow) int { return a.Position.Ratio.Cmp(b.Position.Ratio) },
}

func byMarket(a, b positionRow) int { return slices.Compare(a.Market[:], b.Market[:]) }

// columnsOf are the heads of a table that is sorted by one of them; the word is the first of the head's.
func columnsOf(sorted, order string) (columns []column) {
	for _, name := range []string{"Position", "Account", "Market", "Side", "Size", "Price", "Liquidation ≈",
		"Distance ≈", "Ratio"} {
		word, _, _ := strings.Cut(strings.ToLower(name), " ")
		c := column{Name: name, Num: len(columns) > 3}
		then := url.Values{"sort": {word}, "order": {"asc"}}
		if word == sorted {
			c.Sorted = map[bool]string{true: "descending", false: "ascending"}[order == descending]
			if order != descending {
				then.Set("order", descending)
			}
		}
		c.Href = "/positions?" + then.Encode()
		columns = append(columns, c)
	}
	return columns
}

const descending = "desc"

func (c *console) positions(ctx context.Context, ask url.Values) (any, error) {
	sorting, order := cmp.Or(ask.Get("sort"), "distance"), ask.Get("order")
	compare := sortings[sorting]
	if compare == nil || order != "" && order != "asc" && order != descending {
		return nil, badQuestionError{fmt.Errorf("positions are not sorted by %q, %q", sorting, order)}
	}
	r, at, err := c.near.Latest(ctx)
	if errors.Is(err, exposure.ErrNotYet) {
		return positionsView{Waiting: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	v := positionsView{Ranking: r, Ago: c.Now().Sub(at), Risk: c.riskChart(r.Curves),
		Columns: columnsOf(sorting, order)}
	for _, p := range r.Nearest {
		index := c.Names.Index(p.Market)
		v.Rows = append(v.Rows, positionRow{p, text.Side(p.IsLong), text.USD(p.SizeInUsd),
			c.Names.Price(index, p.Price), c.Names.Price(index, p.LiquidationPrice), text.Percent(p.Distance),
			text.Percent(p.Ratio)})
	}
	slices.SortStableFunc(v.Rows, func(a, b positionRow) int {
		if order == descending {
			a, b = b, a
		}
		return compare(a, b)
	})
	return v, nil
}

// present is the moment that a planner would decide at now.
func (c *console) present(ctx context.Context) (*due.Moment, error) {
	board, err := whynot.Reports(ctx, c.Kafka, c.Keeper.ChainID, c.PriceMaxAge)
	if err != nil {
		return nil, err
	}
	return whynot.Present(ctx, c.DB, board, c.Rules, c.PriceMaxAge)
}
