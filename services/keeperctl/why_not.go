package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/due"
	"perpkeeper/pkg/liquidation"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/wire"
)

// WhyNotConfig is what `keeperctl why-not` is told: where a keeper's state and price reports are, and the rules its planner follows.
type WhyNotConfig struct {
	Keeper      wire.Config        `toml:"keeper"`
	Kafka       bus.Config         `toml:"kafka"`
	Postgres    pg.Config          `toml:"postgres"`
	Liquidation liquidation.Config `toml:"liquidation"`
	Own         WhyNotSettings     `toml:"keeperctl"`
}

// WhyNotSettings is the [keeperctl] section as far as it matters here.
type WhyNotSettings struct {
	FrozenRole  bool          `toml:"frozen_role" help:"judge as a planner whose signers hold the frozen-order role"`
	PriceMaxAge time.Duration `toml:"price_max_age" help:"reports older than this are not judged with; the planner's own bound"`
}

// Validate names every setting that cannot work.
func (s WhyNotSettings) Validate() error {
	if s.PriceMaxAge < time.Second || s.PriceMaxAge > 5*time.Minute {
		return fmt.Errorf("price_max_age: %s is not between 1s and 5m", s.PriceMaxAge)
	}
	return nil
}

// DefaultWhyNotConfig judges as a planner does by default.
func DefaultWhyNotConfig() WhyNotConfig {
	return WhyNotConfig{
		Keeper: wire.DefaultConfig(), Kafka: bus.DefaultConfig(), Postgres: pg.DefaultConfig(), Liquidation: liquidation.DefaultConfig(),
		Own: WhyNotSettings{PriceMaxAge: 30 * time.Second},
	}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c WhyNotConfig) Validate() error { return nil }

// WhyNot says why a position, order or request is not executed now, or that it is due: by the rules the planner uses, on the state and the reports of this
// moment.
func WhyNot(sh *service.Shell, cfg WhyNotConfig, args []string) error {
	if len(args) != 2 {
		return usagef("name one position, order or request by its key (0x and 64 digits)")
	}
	key, err := chain.ParseHash(args[1])
	if err != nil {
		return usagef("%q is no key: %w", args[1], err)
	}
	ctx, cancel := context.WithTimeoutCause(sh.Context(), time.Minute, errors.New("gave up after 1m"))
	defer cancel()
	db, err := pg.Open(ctx, cfg.Postgres, "keeperctl")
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}
	defer db.Close()
	board, err := readReports(ctx, sh, cfg)
	if err != nil {
		return err
	}
	moment, err := presentMoment(ctx, db, board, cfg)
	if err != nil {
		return err
	}
	return explain(ctx, escaped(os.Stdout), db, moment, key)
}

// readReports reads the price reports that may be judged with, up to the newest there is now.
func readReports(ctx context.Context, sh *service.Shell, cfg WhyNotConfig) (*price.Board, error) {
	client, err := bus.New(cfg.Kafka, sh.Log, bus.NewMetrics(sh.Registry))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	topic := wire.PriceTopic(cfg.Keeper.ChainID)
	_, end, err := client.Bounds(ctx, topic, 0)
	if err != nil {
		return nil, fmt.Errorf("looking for price reports: %w", err)
	}
	offset, err := client.OffsetAt(ctx, topic, 0, time.Now().Add(-2*cfg.Own.PriceMaxAge))
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
			if err != nil {
				return nil, fmt.Errorf("reading price reports: %w", err)
			}
			if report, is := m.(wire.Price); is {
				board.Add(price.FromMessage(report))
			}
		}
	}
	return board, nil
}

// presentMoment is what a planner would decide by now.
func presentMoment(ctx context.Context, db *pg.DB, board *price.Board, cfg WhyNotConfig) (*due.Moment, error) {
	s, err := db.Snapshot(ctx, nil)
	switch {
	case err != nil:
		return nil, err
	case s.Halted != "":
		return nil, fmt.Errorf("nothing is executed: the state is halted: %s", s.Halted)
	case !s.HasView():
		return nil, fmt.Errorf("nothing can be judged: the partitions of the state have no block in common; the foremost is %d blocks ahead (is statevm running?)", s.Skew())
	}
	rows := perp.NewBook()
	put(rows, s.Markets)
	put(rows, s.Values)
	put(rows, s.Parameters)
	m := &due.Moment{
		Block: s.Watermark.BlockRef, Generation: uint32(s.Generation), Rows: rows, Glvs: due.GlvsOf(slices.Values(s.Values)), Quotes: map[chain.Address]due.Quote{},
		Rules: due.Rules{FireRatio: cfg.Liquidation.FireRatio.Factor, SliceFactor: cfg.Liquidation.Slice.Factor, FrozenRole: cfg.Own.FrozenRole},
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
func explain(ctx context.Context, out io.Writer, db *pg.DB, m *due.Moment, key chain.Hash) error {
	what, d, err := decide(ctx, db, m, key)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s\nstate   block %d, generation %d\n", what, m.Block.Number, m.Generation); err != nil {
		return err
	}
	if d.Due {
		_, err = fmt.Fprintf(out, "due     %s\njob     %s\n", d.Why, d.Job.ID)
		return err
	}
	_, err = fmt.Fprintf(out, "not due %s\n", d.Why)
	return err
}

func decide(ctx context.Context, db *pg.DB, m *due.Moment, key chain.Hash) (what string, d due.Decision, err error) {
	position, err := db.Position(ctx, key)
	if err != nil {
		return "", d, err
	}
	if p := position.Row; position.Known {
		return fmt.Sprintf("position of %s in market %s, %s, %s", p.Account, p.Market, sideName(p.IsLong), p.Status), m.Position(p), nil
	}
	order, err := db.Order(ctx, key)
	if err != nil {
		return "", d, err
	}
	if o := order.Row; order.Known {
		acted, err := db.Position(ctx, o.PositionKey())
		return fmt.Sprintf("order (%v) of %s in market %s, %s, %s", o.OrderType, o.Account, o.Market, sideName(o.IsLong), o.Status), m.Order(o, acted.Row), err
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
