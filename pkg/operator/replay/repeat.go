package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/tier/execution"
)

// PublishedJob is one publication of a job.
type PublishedJob struct {
	Job   job.Job
	Where string // topic, partition and offset
}

// ReadJobs reads what planners published from the states of some blocks, of one position, order or request where a key
// is given.
func ReadJobs(ctx context.Context, client *bus.Client, keeper wire.Config, first, last uint64,
	key chain.Hash) (published []PublishedJob, err error) {
	topic := wire.JobTopic(keeper.ChainID)
	for part := range keeper.JobPartitions {
		for r, err := range client.Scan(ctx, topic, part, 0) {
			if err != nil {
				return nil, fmt.Errorf("reading %s/%d: %w", topic, part, err)
			}
			j, err := wire.DecodeJob(r) // what nobody can read, senders pass over
			at := j.Evidence.Block.Number
			if err == nil && at >= first && at <= last && (key.IsZero() || j.Key == key) {
				published = append(published, PublishedJob{j, fmt.Sprintf("%s %d/%d", topic, r.Partition, r.Offset)})
			}
		}
	}
	slices.SortStableFunc(published, func(a, b PublishedJob) int {
		return cmp.Compare(a.Job.Evidence.Block.Number, b.Job.Evidence.Block.Number)
	})
	return published, nil
}

// Repeated is a decision that was made again.
type Repeated struct {
	PublishedJob
	Same bool
	// Now is the sentence of today: due or not, and why.
	Now string
	// Missing is the reason why it could not be repeated; empty where it was.
	Missing string
}

// Repeat makes decisions again, those of one block after the other, which is the order they must be in.
func Repeat(p *Past, d execution.Decoder, r *Reports, rules due.Rules,
	published []PublishedJob) ([]Repeated, error) {
	return repeatEach(p, d, r, rules, published, nil)
}

// repeatEach makes decisions again. Keep is given each of them with the rows that it looked at, unless it is nil.
func repeatEach(p *Past, d execution.Decoder, r *Reports, rules due.Rules, published []PublishedJob,
	keep func(again Repeated, s *state, at chain.BlockRef, counts []int) error) (all []Repeated, err error) {
	s := p.state(d)
	var at chain.BlockRef
	known, folded := false, uint64(0)
	for _, one := range published {
		block := one.Job.Evidence.Block
		if block.Number != folded {
			if at, known, err = s.advance(block.Number); err != nil {
				return nil, err
			}
			folded = block.Number
		}
		again := Repeated{PublishedJob: one}
		counts := r.readings(one.Job)
		if keep != nil {
			s.seen = map[perp.RowKey]perp.Row{}
		}
		switch {
		case !known:
			again.Missing = "the log topic does not have that block"
		case at.Hash != block.Hash:
			again.Missing = "it was made on a branch that the chain has left"
		case len(counts) == 0:
			again.Missing = "the price topic does not have the reports any more"
		default:
			again.repeat(s, at, r, rules, counts)
		}
		all = append(all, again)
		if keep != nil {
			if err := keep(again, s, at, counts); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// repeat decides by every reading of the price topic that is possible, until one gives the same.
func (a *Repeated) repeat(s *state, at chain.BlockRef, r *Reports, rules due.Rules, counts []int) {
	var before uint64
	for i, n := range counts {
		m := s.moment(at, a.Job.Evidence.Generation, rules, r.newest(n))
		second := m.Seconds()
		if i > 0 && second == before {
			continue // reports of other tokens say nothing but what time it is
		}
		before = second
		d := s.decide(m, a.Job)
		if a.Same = d.Due && d.Job.ID == a.Job.ID && d.Why == a.Job.Evidence.Reason; a.Same || i == 0 {
			a.Now = sentence(d)
		}
		if a.Same {
			return
		}
	}
}

func sentence(d due.Decision) string {
	if d.Due {
		return "due: " + d.Why
	}
	return "not due: " + d.Why
}

// Decide returns what a planner would have decided on a position, order or request at a block, with the newest reports
// of no later time than the block's.
func Decide(p *Past, d execution.Decoder, r *Reports, rules due.Rules, block uint64, key chain.Hash) (string, error) {
	s := p.state(d)
	at, known, err := s.advance(block)
	if err != nil {
		return "", err
	}
	if !known {
		return "", fmt.Errorf("the log topic does not have block %d", block)
	}
	m := s.moment(at, 0, rules, r.newest(r.until(at.TimeMs)))
	for _, kind := range []job.Kind{job.Liquidation, job.Order, ""} {
		if decision := s.decide(m, job.Job{Kind: kind, Key: key}); decision.Why != unknown {
			return sentence(decision), nil
		}
	}
	return "", fmt.Errorf("%s is no position, order or request of the state at block %d", key, block)
}

// moment is that of a planner.
func (s *state) moment(at chain.BlockRef, generation uint32, rules due.Rules,
	newest func(chain.Address) (due.Quote, bool)) *due.Moment {
	m := &due.Moment{Block: at, Generation: generation, Rows: s, Rules: rules,
		Glvs: due.GlvsOf(rowsOf[perp.MarketValue](s, perp.MarketValues))}
	return m.Quoted(func(yield func(chain.Address) bool) {
		for market := range rowsOf[perp.Market](s, perp.Markets) {
			for _, token := range market.Tokens() {
				if !yield(token) {
					return
				}
			}
		}
	}, due.PriceMaxAge, newest)
}

// unknown is the text for a key that the state does not have.
const unknown = "the state does not have it"

// decide decides about what a job is about.
func (s *state) decide(m *due.Moment, j job.Job) due.Decision {
	row := func(table perp.Table) perp.Row { return s.Get(perp.RowKey{Table: table, Key: j.Key}) }
	if of, is := j.Kind.Cancels(); is {
		j.Kind = of
		return m.Cancel(s.decide(m, j))
	}
	switch j.Kind {
	case job.Liquidation:
		if p, is := row(perp.Positions).(perp.Position); is {
			return m.Position(p)
		}
	case job.Order:
		if o, is := row(perp.Orders).(perp.Order); is {
			position, _ := s.Get(perp.RowKey{Table: perp.Positions, Key: o.PositionKey()}).(perp.Position)
			if position.Status != perp.Active {
				position = perp.Position{} // planners know the open ones
			}
			return m.Order(o, position)
		}
	case job.Adl, job.AdlState:
		return s.deleverage(m, j)
	default:
		if q, is := row(perp.Requests).(perp.Request); is {
			return m.Request(q)
		}
	}
	return due.Decision{Why: unknown}
}

// deleverage finds a job among those of its side.
func (s *state) deleverage(m *due.Moment, j job.Job) due.Decision {
	market, _ := m.Market(j.Market)
	open := func(yield func(*perp.Position) bool) {
		for p := range rowsOf[perp.Position](s, perp.Positions) {
			if p.Market != j.Market || p.Status != perp.Active {
				continue
			}
			if s.saw(p); !yield(&p) {
				return
			}
		}
	}
	nowhere := func() ([]perp.Position, bool) { return nil, true }
	decisions, err := m.Deleverage(market, j.IsLong, open, nowhere)
	if err != nil {
		return due.Decision{Why: err.Error()}
	}
	for _, d := range decisions {
		if d.Job.ID == j.ID {
			return d
		}
	}
	return due.Decision{Why: "it is not among those that have to be deleveraged"}
}
