package venue

import (
	"encoding/binary"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// Venue is one exchange. What traders hold is in the rows that it is called with; it keeps switches alone. It is for
// one goroutine at a time.
type Venue struct {
	markets []perp.Market
	asked   uint64 // keys given so far
	revoked map[chain.Address]bool
	poison  map[chain.Hash]Poison
}

// Poison is the defect of a job.
type Poison int

// The poisons.
const (
	Wholesome Poison = iota
	Open             // it reverts whenever it is executed, be it in a simulated call
	Hidden           // a simulated call succeeds, and the transaction reverts
)

// The parameters, as the contracts' configuration has them.
const (
	expirationSeconds  = 300 // REQUEST_EXPIRATION_TIME
	maxPriceAgeSeconds = 300 // MAX_ORACLE_PRICE_AGE
	maxRangeSeconds    = 60  // MAX_ORACLE_TIMESTAMP_RANGE
)

var (
	minCollateralUsd    = perp.One
	minCollateralFactor = chain.Pow10(28) // 1 % of the size
)

// New returns an exchange with so many markets. Each has an index token of its own, which is its long token as well,
// and all share one short token.
func New(markets int) *Venue {
	v := &Venue{revoked: map[chain.Address]bool{}, poison: map[chain.Hash]Poison{}}
	for n := range markets {
		index := named("index token", n)
		v.markets = append(v.markets, perp.Market{MarketToken: named("market", n), IndexToken: index, LongToken: index,
			ShortToken: Dollar})
	}
	return v
}

// Dollar is the short token of every market. Like all tokens here it has 18 decimals.
var Dollar = named("dollar", 0)

// provider verifies the reports.
var provider = named("provider", 0)

// named derives an address from what it is for.
func named(what string, n int) chain.Address {
	hash := chain.Keccak256(binary.BigEndian.AppendUint64([]byte(what), uint64(n)))
	return hash.Address()
}

// EventEmitter is the contract that emits every event.
var EventEmitter = named("event emitter", 0)

// Contracts are the exchange's. Deleveraging has none.
func Contracts() gmx.Venue { return contracts }

var contracts = func() gmx.Venue {
	executes := map[job.Kind]chain.Address{}
	for _, kind := range job.Kinds() {
		if kind != job.Adl && kind != job.AdlState {
			executes[kind] = named(string(kind)+" handler", 0)
		}
	}
	return gmx.VenueOf(EventEmitter, executes)
}()

// Markets returns the markets.
func (v *Venue) Markets() []perp.Market { return v.markets }

// InitialRows returns the rows that are there before anybody trades: markets and parameters.
func (v *Venue) InitialRows() []perp.Row {
	rows := []perp.Row{
		perp.Parameter{Key: perp.DataStoreKey("MIN_COLLATERAL_USD"), Value: minCollateralUsd.Bytes32()},
		perp.Parameter{Key: perp.DataStoreKey("REQUEST_EXPIRATION_TIME"),
			Value: chain.U64(expirationSeconds).Bytes32()},
	}
	for _, m := range v.markets {
		factor := perp.DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", m.MarketToken.Hash())
		audit := perp.MarketValue{Measure: perp.WordsAudited, Scope: m.MarketToken.Hash(), Value: chain.U64(1).Int()}
		rows = append(rows, m, audit, perp.Parameter{Key: factor, Value: minCollateralFactor.Bytes32()})
	}
	return rows
}

// Revoke takes the keeper roles from an account, or gives them back.
func (v *Venue) Revoke(account chain.Address, revoked bool) { v.revoked[account] = revoked }

// Poison spoils the execution of an order, request or position, by its key.
func (v *Venue) Poison(key chain.Hash, p Poison) { v.poison[key] = p }

// Price is that of a token of 18 decimals that costs so many cents, as reports have it: USD with 30 decimals per
// smallest unit.
func Price(cents uint64) perp.Price {
	p := chain.U64(cents).Mul(chain.Pow10(10))
	return perp.Price{Min: p, Max: p}
}

// Report is a price report as the feed publishes it and the exchange takes it.
func Report(token chain.Address, p perp.Price, timeMs uint64) price.Report {
	low, high := p.Min.Bytes32(), p.Max.Bytes32()
	data := binary.BigEndian.AppendUint64(append(low[:], high[:]...), timeMs)
	return price.Report{Token: token, Provider: provider, Data: data, Min: p.Min, Max: p.Max, TimeMs: timeMs,
		Source: "simulation", ReceivedMs: timeMs}
}
