package keeperctl

import (
	"context"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/due"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/wire"
)

// whyNot says why a position, order or request is not executed now, or that it is due: by the rules the planner uses,
// on the state and the reports of this moment.
func whyNot(ctx context.Context, s *session, args []string) error {
	if len(args) != 1 {
		return usagef("name one position, order or request by its key (0x and 64 digits)")
	}
	key, err := chain.ParseHash(args[0])
	if err != nil {
		return usagef("%q is no key: %w", args[0], err)
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	db, err := s.database(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	board, err := s.reports(ctx)
	if err != nil {
		return notAsked(err)
	}
	moment, err := presentMoment(ctx, db, board, s.Config)
	if err != nil {
		return err
	}
	return explain(ctx, s.out, db, moment, key)
}

// reports reads the price reports that may be judged with, up to the newest there is now.
func (s *session) reports(ctx context.Context) (*price.Board, error) {
	client, err := s.kafka()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	topic := wire.PriceTopic(s.Keeper.ChainID)
	_, end, err := client.Bounds(ctx, topic, 0)
	if err != nil {
		return nil, fmt.Errorf("looking for price reports: %w", err)
	}
	offset, err := client.OffsetAt(ctx, topic, 0, time.Now().Add(-2*s.Own.PriceMaxAge))
	if err != nil {
		return nil, fmt.Errorf("looking for price reports: %w", err)
	}
	board, reader := price.NewBoard(), client.Reader(topic, 0, offset)
	for reader.Offset() < end {
		records, err := reader.NextBatch(ctx, 1000)
		if err != nil {
			return nil, fmt.Errorf("reading price reports: %w", err)
		}
		for _, r := range records {
			m, _, err := wire.Decode(r)
			if report, is := m.(wire.Price); err == nil && is { // what nobody can read, planners pass over
				board.Add(price.FromMessage(report))
			}
		}
	}
	return board, nil
}

// presentMoment is what a planner would decide by now.
func presentMoment(ctx context.Context, db *pg.DB, board *price.Board, cfg Config) (*due.Moment, error) {
	s, err := db.Snapshot(ctx, nil)
	switch {
	case err != nil:
		return nil, err
	case s.Halted != "":
		return nil, fmt.Errorf("nothing is executed: the state is halted: %s", s.Halted)
	case !s.HasView():
		return nil,
			fmt.Errorf("nothing can be judged: the partitions of the state have no block in common; the foremost is "+
				"%d blocks ahead (is statevm running?)", s.Skew())
	}
	rows := perp.NewBook()
	put(rows, s.Markets)
	put(rows, s.Values)
	put(rows, s.Parameters)
	m := &due.Moment{
		Block: s.Watermark.BlockRef, Generation: uint32(s.Generation), Rows: rows,
		Glvs: due.GlvsOf(slices.Values(s.Values)), Quotes: map[chain.Address]due.Quote{},
		Rules: due.Rules{FireRatio: cfg.Liquidation.FireRatio.Factor, SliceFactor: cfg.Liquidation.Slice.Factor,
			FrozenRole: cfg.Own.FrozenRole},
	}
	oldest := m.Block.TimeMs - min(m.Block.TimeMs, uint64(cfg.Own.PriceMaxAge.Milliseconds()))
	for _, market := range s.Markets {
		for _, token := range market.Tokens() {
			if r, known := board.Latest(token); known && r.TimeMs >= oldest {
				m.Quotes[token] = due.Quote{Price: perp.Price{Min: r.Min, Max: r.Max}, TimeMs: r.TimeMs, ID: r.Source}
			}
		}
	}
	return m, nil
}

func put[R perp.Row](book *perp.Book, rows []R) {
	for _, r := range rows {
		book.Put(r)
	}
}

// explain finds what the key names and prints the decision.
func explain(ctx context.Context, out printer, db *pg.DB, m *due.Moment, key chain.Hash) error {
	what, d, err := decide(ctx, db, m, key)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s\nstate   block %d, generation %d\n", inLine(what), m.Block.Number, m.Generation)
	if d.Due {
		text += fmt.Sprintf("due     %s\njob     %s\n", inLine(d.Why), d.Job.ID)
	} else {
		text += fmt.Sprintf("not due %s\n", inLine(d.Why))
	}
	return out.either(struct {
		What       string `json:"what"`
		Block      uint64 `json:"block"`
		Generation uint32 `json:"generation"`
		Due        bool   `json:"due"`
		Why        string `json:"why"`
		Job        string `json:"job,omitempty"`
	}{what, m.Block.Number, m.Generation, d.Due, d.Why, d.Job.ID}, text)
}

func decide(ctx context.Context, db *pg.DB, m *due.Moment, key chain.Hash) (what string, d due.Decision, err error) {
	position, err := db.Position(ctx, key)
	if err != nil {
		return "", d, err
	}
	if p := position.Row; position.Known {
		return fmt.Sprintf("position of %s in market %s, %s, %s", p.Account, p.Market, sideName(p.IsLong), p.Status),
			m.Position(p), nil
	}
	order, err := db.Order(ctx, key)
	if err != nil {
		return "", d, err
	}
	if o := order.Row; order.Known {
		acted, err := db.Position(ctx, o.PositionKey())
		return fmt.Sprintf("order (%v) of %s in market %s, %s, %s", o.OrderType, o.Account, o.Market,
			sideName(o.IsLong), o.Status), m.Order(o, acted.Row), err
	}
	request, err := db.Request(ctx, key)
	if err != nil {
		return "", d, err
	}
	if r := request.Row; request.Known {
		return fmt.Sprintf("%s of %s in market %s, %s", r.Kind, r.Account, r.Market, r.Status), m.Request(r), nil
	}
	return "", d, fmt.Errorf("%s is no position, order or request of the state at block %d", key, m.Block.Number)
}

func sideName(isLong bool) string {
	if isLong {
		return "long"
	}
	return "short"
}
