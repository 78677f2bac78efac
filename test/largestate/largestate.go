// Package largestate fills a database with millions of open positions, as statevm would have left them, for tests of
// size. The rows are made by the server.
package largestate

import (
	"fmt"
	"sync"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

const (
	// Parts is how many partitions the log topic of the state has.
	Parts = 16
	// Markets is how many markets there are; each has an index token of its own, see Token.
	Markets = 40
	// BlockMs is the time of the block that the state stands at, Unix ms.
	BlockMs = 1_700_000_000_000
)

// Stable is the token that all markets have for their other side, of 6 decimals and worth a dollar.
var Stable = chain.Address{3}

// Token is the index token of the i-th market, of 18 decimals, and the collateral of half of its positions.
func Token(i int) chain.Address { return chain.Address{0xaa, byte(i)} }

// Price is a price of an index token in USD, as reports have it: 30 decimals per smallest unit. Positions were opened
// about 1000; there one in a hundred is due to be liquidated, as in a crash that nobody ends.
func Price(usd uint64) chain.Uint { return chain.U64(usd).Mul(chain.Pow10(12)) }

// StablePrice is that of Stable.
var StablePrice = chain.Pow10(24)

// positions are of 2 to 40 times their collateral in all markets and on both sides, opened about the present price of
// $1000, spread over the partitions.
const positions = `INSERT INTO state_g1.position
	SELECT sha256(int8send(i::bigint)), substr(sha256(int8send(i::bigint)), 1, 20),
	'\xbb'::bytea || set_byte('\x00', 0, (i %% 40)::int) || '\x000000000000000000000000000000000000'::bytea,
	CASE WHEN (i / 40) %% 2 = 0 THEN '\x0300000000000000000000000000000000000000'::bytea
		ELSE '\xaa'::bytea || set_byte('\x00', 0, (i %% 40)::int)
			|| '\x000000000000000000000000000000000000'::bytea END,
	(i / 80) %% 2 = 0, 'Active', usd * power(10::numeric, 30),
	trunc(usd * power(10::numeric, 18) / (1000 + 820.0 * ((i * 31::bigint) %% 1000 - 500) / 500 / leverage)),
	trunc(usd * CASE WHEN (i / 40) %% 2 = 0 THEN power(10::numeric, 6) ELSE power(10::numeric, 15) END / leverage),
	-1234567 - i,
	5 * power(10::numeric, 28), 123 * power(10::numeric, 18), 1234567890123456789012345,
	1234567890123456789012345, 1700000000, 0, 3, 900, 17, sha256(int8send(i::bigint)), 1700000000000, i %% 16, 3, NULL
	FROM (SELECT i, 100 + (i * 7919::bigint) %% 100000 AS usd, 2 + i %% 38 AS leverage
		FROM generate_series(%d, %d) i) AS s`

// chunk is how many rows one statement makes.
const chunk = 500_000

// Open is a database with that many positions, all at one block, and how to reach it. It ends with the test.
func Open(tb testing.TB, count int) (*pg.DB, pg.Config) {
	tb.Helper()
	cfg := pgtest.Config(tb)
	db, err := pg.Open(tb.Context(), cfg, "test")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(db.Close)
	block := pg.AppliedBlock{BlockRef: chain.BlockRef{Number: 1000, Hash: chain.Hash{1}, Parent: chain.Hash{2},
		TimeMs: BlockMs}}
	for part := range Parts {
		p, err := db.Claim(tb.Context(), pg.ClaimRequest{Generation: 1, Partition: part, Partitions: Parts})
		if err != nil {
			tb.Fatal(err)
		}
		b := block
		if part == 0 {
			for _, row := range shared() {
				b.Changes = append(b.Changes, pg.Change{After: row})
			}
		}
		if err := p.Commit(tb.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{b}}); err != nil {
			tb.Fatal(err)
		}
	}
	fill(tb, cfg.URL.Reveal(), count)
	return db, cfg
}

// fill makes the positions over two connections. Keeping the indexes as rows come would take most of the time; those of
// keys and accounts no planner asks.
func fill(tb testing.TB, url string, count int) {
	tb.Helper()
	pgtest.Tamper(tb, url, `ALTER TABLE state_g1.position DROP CONSTRAINT position_pkey`,
		`DROP INDEX state_g1.position_open, state_g1.position_rev, state_g1.position_account`)
	var statements []string
	for from := 1; from <= count; from += chunk {
		statements = append(statements, fmt.Sprintf(positions, from, min(from+chunk-1, count)))
	}
	both := func(statements []string) {
		var running sync.WaitGroup
		for _, half := range [][]string{statements[:len(statements)/2], statements[len(statements)/2:]} {
			running.Go(func() { pgtest.Tamper(tb, url, half...) })
		}
		running.Wait()
		if tb.Failed() {
			tb.FailNow()
		}
	}
	both(statements)
	both([]string{
		`CREATE INDEX position_open ON state_g1.position (part) WHERE status = 'Active' AND deleted_at IS NULL`,
		`CREATE INDEX position_rev ON state_g1.position (part, rev)`,
	})
	pgtest.Tamper(tb, url, `VACUUM ANALYZE state_g1.position`)
}

// shared are the markets, with measures and parameters of about GMX's larger ones.
func shared() (rows []perp.Row) {
	set := func(name string, value chain.Uint, args ...chain.Hash) {
		rows = append(rows, perp.Parameter{Key: perp.DataStoreKey(name, args...), Value: value.Bytes32()})
	}
	set("MIN_COLLATERAL_USD", chain.Pow10(30))
	for i := range Markets {
		m := perp.Market{MarketToken: Market(i), IndexToken: Token(i), LongToken: Token(i), ShortToken: Stable}
		rows = append(rows, m)
		key := m.MarketToken.Hash()
		put := func(measure perp.Measure, token chain.Address, isLong bool, value chain.Uint) {
			rows = append(rows, perp.MarketValue{Measure: measure, Scope: key, Token: token, IsLong: isLong,
				Value: value.Int(), Stamp: perp.Stamp{Block: 1000, TimeMs: BlockMs}})
		}
		set("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", chain.Pow10(28).Div(chain.U64(2)), key)
		put(perp.FundingFactorPerSecond, chain.Address{}, false, chain.Uint{})
		for _, is := range []bool{false, true} {
			set("POSITION_FEE_FACTOR", chain.Pow10(26).Mul(chain.U64(6)), key, perp.BoolWord(is))
			put(perp.CumulativeBorrowingFactor, chain.Address{}, is, chain.U64(5).Mul(chain.Pow10(28)))
			for _, token := range []chain.Address{m.LongToken, Stable} {
				interest := chain.U64(40_000_000).Mul(perp.One)
				put(perp.OpenInterest, token, is, interest)
				put(perp.FundingFeeAmountPerSize, token, is, chain.U64(123).Mul(chain.Pow10(18)))
				put(perp.OpenInterestInTokens, token, is, interest.Div(Price(1000)))
			}
		}
		put(perp.PoolAmount, m.LongToken, false, chain.U64(200_000).Mul(chain.Pow10(18)))
		put(perp.PoolAmount, Stable, false, chain.U64(200_000_000).Mul(chain.Pow10(6)))
	}
	return rows
}

// Market is the token of the i-th market.
func Market(i int) chain.Address { return chain.Address{0xbb, byte(i)} }
