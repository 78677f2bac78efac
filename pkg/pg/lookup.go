package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Keys name rows that are looked up together.
type Keys struct {
	Positions, Orders, Requests, Values, Parameters, Transactions []chain.Hash
}

// Rows are how far the active generation has come and single rows of it, as of one instant. Each map has an entry for
// each key that was asked for: that there is no such row is an answer, not an error (TIER-5).
type Rows struct {
	Progress  Progress
	Positions map[chain.Hash]Found[perp.Position]
	// Ending are the open orders that the exchange cancels when it closes a position (autoCancel), by the position's
	// key.
	Ending       map[chain.Hash][]perp.Order
	Orders       map[chain.Hash]Found[perp.Order]
	Requests     map[chain.Hash]Found[perp.Request]
	Values       map[chain.Hash]Found[perp.MarketValue]
	Parameters   map[chain.Hash]Found[perp.Parameter]
	Transactions map[chain.Hash]Found[perp.Transaction]
}

// Found is the answer to a question about one row. That there is none is an answer, not an error (TIER-5).
type Found[R perp.Row] struct {
	Row   R
	Known bool
	// At is the watermark: the answer is at least as new as this block. Its Hash is zero while the partitions have none
	// in common.
	At chain.BlockRef
}

// selectKeyed registers a query for the rows of some keys. While a reorg is on its way through the partitions two of
// them may hold a key, because the exchange gives keys of a lost branch again: the answer is the row of the later
// block.
func selectKeyed(table perp.Table, what string) tableQuery {
	l := layouts[table]
	return tableQuery{table, Register(what, `SELECT DISTINCT ON (t.key) `+l.selected()+
		` FROM {state}.`+string(table)+` t WHERE t.key = ANY ($1) AND t.deleted_at IS NULL
		ORDER BY t.key, t.stamp_block DESC, t.stamp_log DESC`)}
}

var (
	keyedPositions    = selectKeyed(perp.Positions, "positions of keys")
	keyedOrders       = selectKeyed(perp.Orders, "orders of keys")
	keyedRequests     = selectKeyed(perp.Requests, "requests of keys")
	keyedValues       = selectKeyed(perp.MarketValues, "market values of keys")
	keyedTransactions = selectKeyed(perp.Transactions, "transactions of keys")
	// They are few: positions come by their keys, each of them leads to its orders.
	endingOrders = tableQuery{perp.Orders, Register("orders that end with positions", `SELECT `+
		layouts[perp.Orders].selected()+` FROM (
			SELECT DISTINCT account, market, collateral_token, is_long FROM {state}.position
			WHERE key = ANY ($1) AND deleted_at IS NULL
		) p JOIN {state}.perp_order t ON t.account = p.account AND t.market = p.market
			AND t.initial_collateral_token = p.collateral_token AND t.is_long = p.is_long
		WHERE t.auto_cancel AND `+isOpen+` AND t.deleted_at IS NULL`)}

	beginLookup = Register("begin a lookup", `BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY`)
	endLookup   = Register("end a lookup", `COMMIT`)
	// The block of the lowest tip, if all partitions have it.
	selectLowest = Register("block of the lowest tip",
		`SELECT k.block, k.hash, k.parent, k.time_ms
		FROM {state}.stream_offset o JOIN {state}.kept_block k ON k.part = o.part
			AND k.block = (SELECT min(block) FROM {state}.stream_offset)
		GROUP BY k.block, k.hash, k.parent, k.time_ms
		HAVING count(*) = (SELECT partitions FROM keeper.generation WHERE number = $1)`)
)

// Look looks up rows in the active generation. It takes one round trip, however many there are: the transaction's
// beginning and end travel with the questions, and these name the generation that was active at the last look. Where it
// no longer is, or the partitions are on different branches, they are asked again one after the other.
func (db *DB) Look(ctx context.Context, k Keys) (found Rows, err error) {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	if last := int(db.active.Load()); last > 0 {
		if found, err = db.lookAtOnce(ctx, last, k); err == nil {
			return found, nil
		}
		if !errors.Is(err, errLookAgain) && !HasCode(err, codeUndefinedTable, codeInvalidSchema) {
			return Rows{}, fmt.Errorf("looking up rows: %w", err)
		}
	}
	err = db.Read(ctx, "looking up rows", func(ctx context.Context, tx pgx.Tx) error {
		s, err := ActiveProgress(ctx, tx)
		if err != nil {
			return err
		}
		db.active.Store(int64(s.Generation))
		found = newRows(k)
		batch := &pgx.Batch{}
		found.queue(batch, s.Generation, k)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		found.asOf(s)
		return nil
	})
	return found, err
}

// errLookAgain means that the short way does not lead to an answer.
var errLookAgain = errors.New("another generation is active, or the partitions are on different branches")

// lookAtOnce looks up rows in a generation, in one round trip, if it is the active one.
func (db *DB) lookAtOnce(ctx context.Context, generation int, k Keys) (Rows, error) {
	s, active := Progress{Generation: generation}, 0
	var lowest *chain.BlockRef
	found, batch := newRows(k), &pgx.Batch{}
	batch.Queue(beginLookup.SQL())
	batch.Queue(selectActive.SQL()).QueryRow(func(row pgx.Row) error { return row.Scan(&active) })
	batch.Queue(selectPartitions.SQL(), generation).QueryRow(func(row pgx.Row) error { return row.Scan(&s.Partitions) })
	batch.Queue(selectOffsets.In(generation)).Query(func(rows pgx.Rows) (err error) {
		s.Offsets, err = pgx.CollectRows(rows, collectOffset)
		return err
	})
	batch.Queue(selectLowest.In(generation), generation).Query(func(rows pgx.Rows) error {
		common, err := pgx.CollectRows(rows, scanBlock)
		if len(common) == 1 {
			lowest = &common[0]
		}
		return err
	})
	found.queue(batch, generation, k)
	batch.Queue(endLookup.SQL())
	if err := db.pool.SendBatch(ctx, batch).Close(); err != nil {
		return Rows{}, err
	}
	s.Halted = haltOf(s.Offsets)
	switch tip, level := commonTip(s); {
	case active != generation:
		return Rows{}, errLookAgain
	case level:
		s.Watermark = tip
	case lowest != nil:
		s.Watermark = *lowest
	default:
		return Rows{}, errLookAgain
	}
	found.asOf(s)
	return found, nil
}

func newRows(k Keys) Rows {
	return Rows{
		Positions: unknown[perp.Position](k.Positions), Ending: map[chain.Hash][]perp.Order{},
		Orders: unknown[perp.Order](k.Orders), Requests: unknown[perp.Request](k.Requests),
		Values: unknown[perp.MarketValue](k.Values), Parameters: unknown[perp.Parameter](k.Parameters),
		Transactions: unknown[perp.Transaction](k.Transactions),
	}
}

// unknown has an answer for each key, before any row was found.
func unknown[R perp.Row](keys []chain.Hash) map[chain.Hash]Found[R] {
	all := make(map[chain.Hash]Found[R], len(keys))
	for _, key := range keys {
		all[key] = Found[R]{}
	}
	return all
}

// queue asks for the rows of keys.
func (r *Rows) queue(batch *pgx.Batch, generation int, k Keys) {
	ask(batch, keyedPositions, generation, k.Positions, keep(r.Positions))
	ask(batch, endingOrders, generation, k.Positions, func(o perp.Order) {
		key := o.PositionKey()
		r.Ending[key] = append(r.Ending[key], o)
	})
	ask(batch, keyedOrders, generation, k.Orders, keep(r.Orders))
	ask(batch, keyedRequests, generation, k.Requests, keep(r.Requests))
	ask(batch, keyedValues, generation, k.Values, keep(r.Values))
	ask(batch, someParameters, generation, k.Parameters, keep(r.Parameters))
	ask(batch, keyedTransactions, generation, k.Transactions, keep(r.Transactions))
}

// keep puts rows in a map by their keys.
func keep[R perp.Row](into map[chain.Hash]Found[R]) func(R) {
	return func(row R) { into[row.RowKey().Key] = Found[R]{Row: row, Known: true} }
}

// ask asks for rows of one table, if any.
func ask[R perp.Row](batch *pgx.Batch, q tableQuery, generation int, keys []chain.Hash, take func(R)) {
	if len(keys) == 0 {
		return
	}
	batch.Queue(q.In(generation), Hashes(keys)).Query(func(rows pgx.Rows) error {
		return eachRow(rows, layouts[q.table], func(row perp.Row) error {
			r, ok := row.(R)
			if !ok {
				return fmt.Errorf("a %T among the rows of %s", row, q.table)
			}
			take(r)
			return nil
		})
	})
}

// asOf adds to every row how far the state was.
func (r *Rows) asOf(s Progress) {
	r.Progress = s
	stampAll(r.Positions, s.Watermark)
	stampAll(r.Orders, s.Watermark)
	stampAll(r.Requests, s.Watermark)
	stampAll(r.Values, s.Watermark)
	stampAll(r.Parameters, s.Watermark)
	stampAll(r.Transactions, s.Watermark)
}

func stampAll[R perp.Row](all map[chain.Hash]Found[R], at chain.BlockRef) {
	for key, f := range all {
		f.At = at
		all[key] = f
	}
}

// Progress returns how far the active generation has come.
func (db *DB) Progress(ctx context.Context) (Progress, error) {
	found, err := db.Look(ctx, Keys{})
	return found.Progress, err
}

// Position looks up one position in the active generation.
func (db *DB) Position(ctx context.Context, key chain.Hash) (Found[perp.Position], error) {
	found, err := db.Look(ctx, Keys{Positions: []chain.Hash{key}})
	return found.Positions[key], err
}

// Order looks up one order in the active generation.
func (db *DB) Order(ctx context.Context, key chain.Hash) (Found[perp.Order], error) {
	found, err := db.Look(ctx, Keys{Orders: []chain.Hash{key}})
	return found.Orders[key], err
}

// Request looks up one deposit, withdrawal or shift in the active generation.
func (db *DB) Request(ctx context.Context, key chain.Hash) (Found[perp.Request], error) {
	found, err := db.Look(ctx, Keys{Requests: []chain.Hash{key}})
	return found.Requests[key], err
}

// MarketValue looks up one measure of a market in the active generation.
func (db *DB) MarketValue(ctx context.Context, key chain.Hash) (Found[perp.MarketValue], error) {
	found, err := db.Look(ctx, Keys{Values: []chain.Hash{key}})
	return found.Values[key], err
}
