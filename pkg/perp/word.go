package perp

import (
	"fmt"
	"slices"
	"strings"

	"perpkeeper/pkg/chain"
)

// WordKind is which of the DataStore's getters reads a word: each keeps its own values under the same key.
type WordKind string

// The kinds of words.
const (
	UintWord    WordKind = "uint"
	IntWord     WordKind = "int"
	AddressWord WordKind = "address"
	FlagWord    WordKind = "bool"
	Bytes32Word WordKind = "bytes32"
)

// WordScope is of what there is one word each: it gives the arguments of a word's key.
type WordScope string

// The scopes. The last four are of words that cannot be listed: no rule knows all accounts, nor who provides prices.
const (
	OfVenue       WordScope = "venue"        // one, without arguments
	OfMarket      WordScope = "market"       // (market)
	OfMarketSide  WordScope = "market_side"  // (market, bool): a side, or whether a trade improves the balance
	OfMarketToken WordScope = "market_token" // (market, token), for the two tokens of its pool
	OfToken       WordScope = "token"        // (token), for every token of a market
	OfAccount     WordScope = "account"      // (account)
	OfTier        WordScope = "tier"         // (number)
	OfProvider    WordScope = "provider"     // (oracle provider, token)
	OfHandler     WordScope = "handler"      // (handler), and one without arguments
)

// WordName is one kind of word that rules read: a name of Keys.sol, and of what there is one each.
type WordName struct {
	Name string
	// Prefix is the name of a word that stands before the other arguments: MAX_PNL_FACTOR(MAX_PNL_FACTOR_FOR_TRADERS,
	// market, isLong).
	Prefix string
	Kind   WordKind
	Scope  WordScope
	// Unaudited is the reason why a word that rules read is not compared with the chain; empty for all others.
	Unaudited string
}

const (
	changedByEvent = "there is one for each account, tier or provider, and only the exchange's Config sets it, with " +
		"an event"
	shownByCode    = "it is no word of the DataStore: the scanner reads it from the handlers' code"
	changedByTrade = "it moves with every accrual of funding, and is folded from these events, which also put it right"
)

// Catalogue lists every word of the DataStore that a rule reads: when a position is liquidated, when an order is due,
// what a swap gives, how much gas an execution takes. Whoever lets a rule read another word adds it here; tests fail
// until then. Words that a source of prices reads from the chain itself, each minute, are none (pkg/price/source).
func Catalogue() []WordName { return slices.Clone(catalogue) }

var catalogue = slices.Concat(
	words(OfVenue, UintWord, "MIN_COLLATERAL_USD", "REQUEST_EXPIRATION_TIME", "MAX_ORACLE_PRICE_AGE"),
	words(OfVenue, FlagWord, "SKIP_BORROWING_FEE_FOR_SMALLER_SIDE", "USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE"),
	// Gas.
	words(OfVenue, UintWord, "INCREASE_ORDER_GAS_LIMIT", "DECREASE_ORDER_GAS_LIMIT", "SWAP_ORDER_GAS_LIMIT",
		"SINGLE_SWAP_GAS_LIMIT", "DEPOSIT_GAS_LIMIT",
		"WITHDRAWAL_GAS_LIMIT", "SHIFT_GAS_LIMIT", "GLV_DEPOSIT_GAS_LIMIT", "GLV_WITHDRAWAL_GAS_LIMIT",
		"GLV_SHIFT_GAS_LIMIT", "GLV_PER_MARKET_GAS_LIMIT",
		"MIN_ADDITIONAL_GAS_FOR_EXECUTION", "MIN_HANDLE_EXECUTION_ERROR_GAS",
		"MIN_HANDLE_EXECUTION_ERROR_GAS_TO_FORWARD", "MAX_CALLBACK_GAS_LIMIT",
		"MAX_TOTAL_CALLBACK_GAS_LIMIT_FOR_AUTO_CANCEL_ORDERS", "REFUND_EXECUTION_FEE_GAS_LIMIT",
		"MAX_AUTO_CANCEL_ORDERS",
		"ESTIMATED_GAS_FEE_BASE_AMOUNT_V2_1", "ESTIMATED_GAS_FEE_PER_ORACLE_PRICE",
		"ESTIMATED_GAS_FEE_MULTIPLIER_FACTOR"),
	// Swaps.
	words(OfVenue, UintWord, "SWAP_FEE_RECEIVER_FACTOR", "MAX_UI_FEE_FACTOR"),
	words(OfMarket, UintWord, "SWAP_IMPACT_EXPONENT_FACTOR", "ATOMIC_SWAP_FEE_FACTOR"),
	words(OfMarketSide, UintWord, "SWAP_IMPACT_FACTOR", "SWAP_FEE_FACTOR", "RESERVE_FACTOR"),
	words(OfMarketToken, UintWord, "MAX_POOL_AMOUNT"),
	words(OfMarket, FlagWord, "IS_MARKET_DISABLED"),
	words(OfMarket, Bytes32Word, "VIRTUAL_MARKET_ID"),
	// Positions.
	words(OfToken, Bytes32Word, "VIRTUAL_TOKEN_ID"),
	words(OfMarket, UintWord, "MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", "MAX_POSITION_IMPACT_FACTOR_FOR_LIQUIDATIONS",
		"MIN_POSITION_IMPACT_POOL_AMOUNT",
		"FUNDING_FACTOR", "FUNDING_EXPONENT_FACTOR", "FUNDING_INCREASE_FACTOR_PER_SECOND",
		"FUNDING_DECREASE_FACTOR_PER_SECOND", "MIN_FUNDING_INCREASE_RATE_PER_SECOND",
		"MIN_FUNDING_FACTOR_PER_SECOND", "MAX_FUNDING_FACTOR_PER_SECOND", "THRESHOLD_FOR_STABLE_FUNDING",
		"THRESHOLD_FOR_DECREASE_FUNDING"),
	words(OfMarketSide, UintWord, "POSITION_FEE_FACTOR", "POSITION_IMPACT_FACTOR", "POSITION_IMPACT_EXPONENT_FACTOR",
		"MAX_POSITION_IMPACT_FACTOR",
		"BORROWING_FACTOR", "BORROWING_EXPONENT_FACTOR", "OPTIMAL_USAGE_FACTOR", "BASE_BORROWING_FACTOR",
		"ABOVE_OPTIMAL_USAGE_BORROWING_FACTOR",
		"OPEN_INTEREST_RESERVE_FACTOR", "MIN_PNL_FACTOR_AFTER_ADL", "MAX_OPEN_INTEREST",
		// of the side that pays, since v2.2c; handlers of v2.2b read the market's, above
		"MIN_FUNDING_FACTOR_PER_SECOND", "MAX_FUNDING_FACTOR_PER_SECOND"),
	[]WordName{
		{Name: "MAX_PNL_FACTOR", Prefix: "MAX_PNL_FACTOR_FOR_TRADERS", Kind: UintWord, Scope: OfMarketSide},
		{Name: "MAX_PNL_FACTOR", Prefix: "MAX_PNL_FACTOR_FOR_ADL", Kind: UintWord, Scope: OfMarketSide},
		{Name: "MAX_PNL_FACTOR", Prefix: "MAX_PNL_FACTOR_FOR_DEPOSITS", Kind: UintWord, Scope: OfMarketSide},
		{Name: "MAX_PNL_FACTOR", Prefix: "MAX_PNL_FACTOR_FOR_WITHDRAWALS", Kind: UintWord, Scope: OfMarketSide},
		{Name: "PRO_TRADER_TIER", Kind: UintWord, Scope: OfAccount, Unaudited: changedByEvent},
		{Name: "PRO_DISCOUNT_FACTOR", Kind: UintWord, Scope: OfTier, Unaudited: changedByEvent},
		{Name: "UI_FEE_FACTOR", Kind: UintWord, Scope: OfAccount, Unaudited: changedByEvent},
		{Name: "ORACLE_TIMESTAMP_ADJUSTMENT", Kind: UintWord, Scope: OfProvider, Unaudited: changedByEvent},
		{Name: "SAVED_FUNDING_FACTOR_PER_SECOND", Kind: IntWord, Scope: OfMarket, Unaudited: changedByTrade},
		{Name: "HANDLER_VERSION", Kind: UintWord, Scope: OfHandler, Unaudited: shownByCode},
	},
)

func words(scope WordScope, kind WordKind, names ...string) []WordName {
	all := make([]WordName, len(names))
	for i, name := range names {
		all[i] = WordName{Name: name, Kind: kind, Scope: scope}
	}
	return all
}

// Word is one word of the DataStore that the rules of a venue read.
type Word struct {
	Key  chain.Hash
	Kind WordKind
	// Name is its name and arguments, for people: POSITION_FEE_FACTOR(0x…, true).
	Name string
	// Market and Token say whom it concerns: a market, every market with the token, or all markets where both are zero.
	Market, Token chain.Address
}

// Concerns reports whether a market's rules read the word.
func (w Word) Concerns(m Market) bool {
	switch {
	case w.Market != chain.Address{}:
		return w.Market == m.MarketToken
	case w.Token != chain.Address{}:
		return slices.Contains(m.Tokens(), w.Token)
	}
	return true
}

// Words lists the words of a name for the markets of a venue and their tokens, each once; none where they cannot be
// listed.
func (n WordName) Words(markets []Market) []Word {
	switch n.Scope { //nolint:exhaustive // the others are asked of each market, below
	case OfVenue:
		return []Word{n.word(chain.Address{}, chain.Address{})}
	case OfToken:
		var all []Word
		seen := map[chain.Address]bool{}
		for _, m := range markets {
			for _, token := range m.Tokens() {
				if !seen[token] {
					seen[token] = true
					all = append(all, n.word(chain.Address{}, token, argument{token.Hash(), token.Hex()}))
				}
			}
		}
		return all
	}
	var all []Word
	for _, m := range markets {
		own := argument{m.MarketToken.Hash(), m.MarketToken.Hex()}
		switch n.Scope { //nolint:exhaustive // the others are not of markets
		case OfMarket:
			all = append(all, n.word(m.MarketToken, chain.Address{}, own))
		case OfMarketSide:
			for _, is := range []bool{false, true} {
				all = append(all, n.word(m.MarketToken, chain.Address{}, own, argument{BoolWord(is), fmt.Sprint(is)}))
			}
		case OfMarketToken:
			for _, token := range slices.Compact([]chain.Address{m.LongToken, m.ShortToken}) {
				all = append(all, n.word(m.MarketToken, chain.Address{}, own, argument{token.Hash(), token.Hex()}))
			}
		}
	}
	return all
}

// argument is one argument of a key, and how it is written.
type argument struct {
	word chain.Hash
	text string
}

func (n WordName) word(market, token chain.Address, args ...argument) Word {
	if n.Prefix != "" {
		args = slices.Insert(args, 0, argument{BaseKey(n.Prefix), n.Prefix})
	}
	w := Word{Kind: n.Kind, Name: n.Name, Market: market, Token: token}
	keys, texts := make([]chain.Hash, len(args)), make([]string, len(args))
	for i, a := range args {
		keys[i], texts[i] = a.word, a.text
	}
	w.Key = DataStoreKey(n.Name, keys...)
	if len(args) > 0 {
		w.Name += "(" + strings.Join(texts, ", ") + ")"
	}
	return w
}

// Words lists every word that is compared with the chain for a venue with these markets.
func Words(markets []Market) []Word {
	var all []Word
	for _, n := range catalogue {
		if n.Unaudited == "" {
			all = append(all, n.Words(markets)...)
		}
	}
	return all
}

// Audit is the event that every word which rules read for a market was compared with the chain at a final block.
func Audit(market chain.Address, read uint64, stamp Stamp) Event {
	return MarketValued{Values: []MarketValue{{Measure: WordsAudited, Scope: market.Hash(),
		Value: chain.U64(read).Int(), Stamp: stamp}}}
}

// AuditKey is the key of the row that holds when a market's words were audited.
func AuditKey(market chain.Address) RowKey {
	return MarketValueKey(WordsAudited, market.Hash(), chain.Address{}, false)
}
