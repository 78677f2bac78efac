package pg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/perp"
)

var (
	// The creating transaction is part of the key, because the exchange gives keys of a lost branch again. No time
	// after the year 3000 is meant.
	addExpiries = Register("add expiries", `INSERT INTO keeper.delayed_job (kind, key, payload, due_at, next_at)
		SELECT $1, w.id, jsonb_build_object('what', w.what, 'key', '0x' || encode(w.key, 'hex'), 'account', '0x' ||
			encode(w.account, 'hex')), w.due, w.due
		FROM (
			SELECT v.what, v.key, v.account, '0x' || encode(v.key, 'hex') || '@0x' || encode(v.birth_tx_hash, 'hex')
				AS id,
				to_timestamp(least(v.updated_at_time + $2::bigint, 32503680000)::float8) AS due
			FROM (
				SELECT kind AS what, key, account, birth_tx_hash, updated_at_time FROM {state}.request
				WHERE status IN ('Created', 'Updated', 'Frozen') AND deleted_at IS NULL
				UNION ALL
				SELECT 'order', key, account, birth_tx_hash, updated_at_time FROM {state}.perp_order
				WHERE status IN ('Created', 'Updated', 'Frozen') AND deleted_at IS NULL AND order_type = ANY ($3)
			) v
		) w
		WHERE NOT EXISTS (SELECT FROM keeper.delayed_job d WHERE d.kind = $1 AND d.key = w.id)
		ON CONFLICT DO NOTHING`)
	selectParameter = Register("parameter", `SELECT value FROM {state}.parameter WHERE key = $1 AND deleted_at IS NULL
		ORDER BY stamp_block DESC, stamp_log DESC LIMIT 1`)
	// Every day since the last one that has a report, so that days without a planner have one too. What a clock that
	// was ahead has written of times to come is taken back: reports of such days, those it finished, and later tries.
	addReports = Register("add daily reports", `WITH t AS (
			SELECT now, (now AT TIME ZONE 'UTC')::date AS today, to_char(now AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS key
			FROM clock_timestamp() now),
		ahead AS (DELETE FROM keeper.delayed_job d USING t WHERE d.kind = $1 AND d.key > t.key),
		early AS (UPDATE keeper.delayed_job d SET status = 'pending', finished_at = NULL, next_at = d.due_at,
			version = d.version + 1 FROM t WHERE d.kind = $1 AND d.key <= t.key AND d.finished_at > t.now),
		far AS (UPDATE keeper.delayed_job d SET next_at = d.due_at, version = d.version + 1 FROM t
			WHERE `+stillDue+` AND d.attempts > 0 AND d.next_at > t.now + interval '1 hour')
		INSERT INTO keeper.delayed_job (kind, key, payload, due_at, next_at)
		SELECT $1, to_char(day, 'YYYY-MM-DD'), '{}', (day + interval '1 day') AT TIME ZONE 'UTC', (day + interval
			'1 day') AT TIME ZONE 'UTC'
		FROM t, generate_series(coalesce((SELECT max(d.key)::date + 1 FROM keeper.delayed_job d
			WHERE d.kind = $1 AND d.key <= t.key), t.today)::timestamp, t.today, interval '1 day') day
		ON CONFLICT DO NOTHING`)
)

// Reports is the source that asks for a report of every day.
func (s Delayed) Reports() delayed.Source {
	return delayed.Source{Name: "daily reports", Feed: func(ctx context.Context) (int, error) {
		return s.feed(ctx, addReports, noGeneration, delayed.DailyReport)
	}}
}

// Expiries is the source that notices open requests and market orders, which the venue stops accepting reports for.
func (s Delayed) Expiries() delayed.Source {
	return delayed.Source{Name: "expiries", Feed: s.addExpiries}
}

func (s Delayed) addExpiries(ctx context.Context) (int, error) {
	generation, err := s.db.ActiveGeneration(ctx)
	if err != nil {
		return 0, err
	}
	life, err := s.requestLife(ctx, generation)
	if err != nil {
		return 0, err
	}
	var market []int16
	for t := perp.OrderType(0); t <= perp.StopIncrease; t++ {
		if t.IsMarket() {
			market = append(market, int16(t))
		}
	}
	return s.feed(ctx, addExpiries, generation, delayed.Expiry, life, market)
}

// requestLife is for how many seconds the venue accepts reports for a market order or request.
func (s Delayed) requestLife(ctx context.Context, generation int) (uint64, error) {
	const venueDefault = 300 // config/general.ts of the contracts
	key := perp.DataStoreKey("REQUEST_EXPIRATION_TIME")
	values, err := List(ctx, s.db, "reading how long requests live", pgx.RowTo[[]byte],
		selectParameter.In(generation), key[:])
	if err != nil {
		return 0, err
	}
	if len(values) == 0 {
		return venueDefault, nil
	}
	seconds, fits := chain.UintFromBytes(values[0]).Uint64()
	if !fits {
		return venueDefault, nil
	}
	return min(seconds, 1<<40), nil // far in the future is far enough
}

// noGeneration stands where a statement is over schema keeper alone.
const noGeneration = 0

// feed runs an insertion and returns how many rows it made.
func (s Delayed) feed(ctx context.Context, insertion *Statement, generation int, args ...any) (int, error) {
	rows, err := s.db.Run(ctx, "adding delayed jobs", insertion.In(generation), args...)
	return int(rows), err
}
