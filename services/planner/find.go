package planner

import (
	"context"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/liquidation"
	"perpkeeper/pkg/perp"
)

// finder finds the jobs of a world. It remembers nothing but since when price-born conditions hold.
type finder struct {
	signers     []chain.Address
	liquidation liquidation.Config
	frozenRole  bool
	births      births
}

// find returns every live job of the world, and beside them the failures that left out single positions.
func (f *finder) find(ctx context.Context, w world) (jobs []job.Job, failures error) {
	f.births.begin()
	jobs, failures = f.liquidatable(ctx, w)
	jobs = append(jobs, f.dueOrders(w)...)
	jobs = append(jobs, f.dueRequests(w)...)
	f.births.end()
	for i := range jobs {
		j := &jobs[i]
		j.Signer = job.Route(j.Account, f.signers)
		j.Evidence.Block, j.Evidence.Generation = w.block, w.generation
		j.Evidence.Reports = w.reportIDs(j.Tokens)
	}
	return jobs, failures
}

func (f *finder) liquidatable(ctx context.Context, w world) ([]job.Job, error) {
	found, failures := liquidation.Sweep(ctx, w.judgeable(), perp.Circumstances{
		Rows: w.rows, Prices: w.prices(), Time: w.block.TimeMs / 1000, FireRatio: f.liquidation.FireRatio.Factor,
	}, f.liquidation.Workers)
	jobs := make([]job.Job, 0, len(found))
	for _, c := range found {
		tokens, _ := w.tokens(c.Position.Market)
		market, _ := w.market(c.Position.Market)
		id := job.LiquidationID(c.Position.PositionKey, c.Position.Changes)
		jobs = append(jobs, job.Job{
			ID: id, Kind: job.Liquidation, Key: c.Position.PositionKey, Account: c.Position.Account, Market: c.Position.Market,
			Collateral: c.Position.CollateralToken, IsLong: c.Position.IsLong, Tokens: tokens, Class: job.ClassLiquidation,
			Ratio: c.Verdict.Ratio, BirthMs: f.births.of(id, w.reports[market.IndexToken].TimeMs),
			Evidence: job.Evidence{Reason: fmt.Sprintf("remaining %s, required %s", c.Verdict.RemainingCollateralUsd,
				c.Verdict.MinCollateralUsd.Max(c.Verdict.MinCollateralUsdForLeverage))},
		})
	}
	return jobs, failures
}

// judgeable leaves out the positions the venue would refuse with the newest reports: those that changed after them. While a feed lags
// behind the chain this happens to every fresh position, and it is no failure.
func (w world) judgeable() []perp.Position {
	judgeable := make([]perp.Position, 0, len(w.positions))
	for _, p := range w.positions {
		if m, known := w.market(p.Market); known && perp.LiquidationWindow(p).Holds(w.reports[m.IndexToken].TimeMs/1000) {
			judgeable = append(judgeable, p)
		}
	}
	return judgeable
}
