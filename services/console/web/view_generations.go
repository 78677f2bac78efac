package web

import (
	"context"
	"net/url"

	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/pg"
)

// generationView is a generation, and how far it is.
type generationView struct {
	pg.Generation
	Role, Halted string
	Block        uint64
	Skew         uint64
	Known        bool                 // whether this build can read how far it is
	Progress     *generation.Progress // while it is being filled
}

func (c *console) generations(ctx context.Context, _ url.Values) (any, error) {
	all, err := c.DB.Generations(ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]generationView, 0, len(all))
	for _, g := range all {
		row := generationView{Generation: g, Role: g.Role(), Known: g.Fits()}
		if row.Known {
			if err := c.howFar(ctx, &row); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (c *console) howFar(ctx context.Context, row *generationView) error {
	at, err := c.DB.ProgressOf(ctx, row.Number)
	if err != nil {
		return err
	}
	row.Block, row.Halted, row.Skew = at.Watermark.Number, at.Halted, at.Skew()
	if generation.IsFilled(row.Generation, c.Keeper.LogPartitions) {
		p, err := generation.Look(ctx, c.DB, c.Kafka, c.Keeper, row.Number)
		if err != nil {
			return err
		}
		row.Progress = &p
	}
	return nil
}
