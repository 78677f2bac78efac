package web

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/pg"
)

// generationsView is the generations of the state, and what is being done with them.
type generationsView struct {
	Rows    []generationView
	Tasks   []task
	Filling bool
	Before  int // the one to go back to; 0 = none
}

// generationView is a generation, and how far it is.
type generationView struct {
	pg.Generation
	Role, Halted string
	Block        uint64
	Skew         uint64
	Known        bool   // whether this build can read how far it is
	Compared     string // with the active one, by this console
	Differs      bool
	Progress     *generation.Progress // while it is being filled
	Left         time.Duration        // until it is filled, at this pace; negative while nobody knows
}

func (c *console) generations(ctx context.Context, _ url.Values) (any, error) {
	all, err := c.DB.Generations(ctx)
	if err != nil {
		return nil, err
	}
	v := generationsView{Tasks: c.tasks.all(c.Now()), Filling: generation.Filling(all, c.Keeper.LogPartitions) != 0}
	for _, g := range all {
		row := generationView{Generation: g, Role: g.Role(), Known: g.Fits()}
		if row.Known {
			if err := c.howFar(ctx, &row); err != nil {
				return nil, err
			}
		}
		v.Rows = append(v.Rows, row)
	}
	v.Before, err = c.DB.PreviousGeneration(ctx)
	return v, err
}

func (c *console) howFar(ctx context.Context, row *generationView) error {
	at, err := c.DB.ProgressOf(ctx, row.Number)
	if err != nil {
		return err
	}
	row.Block, row.Halted, row.Skew = at.Watermark.Number, at.Halted, at.Skew()
	row.Compared = c.comparedWith(row.Number)
	row.Differs = strings.HasPrefix(row.Compared, differs)
	if generation.IsFilled(row.Generation, c.Keeper.LogPartitions) {
		now, err := generation.Look(ctx, c.DB, c.Kafka, c.Keeper, row.Number)
		if err != nil {
			return err
		}
		p := c.filling.next(now)
		row.Progress, row.Left = &p, time.Duration(p.Left)*time.Second
	}
	return nil
}

// fillings are the generations that are being filled, from when somebody first looked.
type fillings struct {
	mutex sync.Mutex
	last  map[int]generation.Progress
}

// next is a later look, with the pace since the first one.
func (f *fillings) next(now generation.Progress) generation.Progress {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.last == nil {
		f.last = map[int]generation.Progress{}
	}
	now = f.last[now.Generation].Next(now)
	f.last[now.Generation] = now
	return now
}

const (
	differs     = "DIFFERENT"
	notCompared = "not by this console"
)

// comparedWith is what comparing a generation with the active one came to, while this console runs.
func (c *console) comparedWith(number int) string {
	result, _ := c.compared.Load(number)
	text, _ := result.(string)
	return text
}
