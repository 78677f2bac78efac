package recordings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// tokenName is a token that prices are given for by symbol. Of a symbol that is not given only the decimals are
// known, or not even these.
type tokenName struct {
	address  chain.Address
	decimals int
}

// tokenNames maps symbols to tokens: those that --tokens names, and the decimals of well-known ones.
type tokenNames map[string]tokenName

// wellKnownDecimals are those of the tokens of the recordings and of the usual markets on BSC.
func wellKnownDecimals() tokenNames {
	known := tokenNames{}
	for decimals, symbols := range map[int]string{
		18: "WETH ETH WBNB BNB BTCB SOL AVAX LINK DAI BUSD ARB OP", 8: "WBTC BTC DOGE", 6: "USDC USDT XRP",
	} {
		for symbol := range strings.FieldsSeq(symbols) {
			known[symbol] = tokenName{decimals: decimals}
		}
	}
	return known
}

// parseTokens reads SYMBOL=ADDRESS:DECIMALS, separated by commas, and adds the well-known.
func parseTokens(text string) (tokenNames, error) {
	names := wellKnownDecimals()
	for entry := range strings.SplitSeq(text, ",") {
		if entry == "" {
			continue
		}
		symbol, rest, _ := strings.Cut(entry, "=")
		address, decimals, _ := strings.Cut(rest, ":")
		token, err := chain.ParseAddress(address)
		places, errPlaces := strconv.Atoi(decimals)
		if err != nil || errPlaces != nil || symbol == "" || places < 0 || places > 30 {
			return nil, fmt.Errorf("%q is no token: want SYMBOL=ADDRESS:DECIMALS", entry)
		}
		names[symbol] = tokenName{address: token, decimals: places}
	}
	return names, nil
}

// quote is the price of one name in a case: the token it can only be, if that is known, and its decimals, -1 if they
// are not.
type quote struct {
	name  string
	price casePrice
	tokenName
}

func (names tokenNames) quotes(given map[string]casePrice) []quote {
	var quotes []quote
	for _, name := range slices.Sorted(maps.Keys(given)) {
		q := quote{name: name, price: given[name], tokenName: tokenName{decimals: -1}}
		if known, ok := names[name]; ok {
			q.tokenName = known
		} else if address, err := chain.ParseAddress(name); err == nil {
			q.address = address
			for _, token := range names {
				if token.address == address {
					q.decimals = token.decimals
				}
			}
		}
		quotes = append(quotes, q)
	}
	return quotes
}

// prices finds out which symbols stand for a market's tokens, which no log shows, and returns their prices per smallest
// unit. It takes the matching in which the tokens' prices are nearest to those at which open positions were opened; it
// returns an error when two matchings are alike.
func (names tokenNames) prices(given map[string]casePrice, m perp.Market,
	worth map[chain.Address]float64) (map[chain.Address]perp.Price, error) {
	tokens := m.Tokens()
	quotes := names.quotes(given)
	s := search{quotes: quotes, best: math.Inf(1), second: math.Inf(1)}
	for _, token := range tokens {
		s.seen = append(s.seen, worth[token])
		s.short = append(s.short, token == m.ShortToken)
	}
	s.match(tokens, nil, 0)
	if s.chosen == nil {
		return nil, fmt.Errorf("no prices for the %d tokens of market %s: it needs %v, given are %v",
			len(tokens), m.MarketToken, tokens, slices.Sorted(maps.Keys(given)))
	}
	if s.second-s.best < math.Ln2 {
		return nil,
			errors.New("cannot tell which symbol is which token; say so with --tokens SYMBOL=ADDRESS:DECIMALS,…")
	}
	prices := map[chain.Address]perp.Price{}
	for i, token := range tokens {
		q := quotes[s.chosen[i]]
		if q.decimals < 0 && s.seen[i] == 0 {
			return nil,
				fmt.Errorf("cannot tell how many decimals %s has; say so with --tokens SYMBOL=ADDRESS:DECIMALS,…",
					q.name)
		}
		minimum, err := q.price.Min.perUnit(q.places(s.seen[i]))
		maximum, errMax := q.price.Max.perUnit(q.places(s.seen[i]))
		if err := errors.Join(err, errMax); err != nil {
			return nil, fmt.Errorf("price of %s: %w", q.name, err)
		}
		prices[token] = perp.Price{Min: minimum, Max: maximum}
	}
	return prices, nil
}

// search tries every way to give each token a quote of its own and keeps the likeliest.
type search struct {
	quotes []quote
	// what a unit of each token was worth when positions were opened, in USD with 30 decimals; 0 where none shows it
	seen         []float64
	short        []bool // which token is the short one
	chosen       []int
	best, second float64
}

func (s *search) match(tokens []chain.Address, taken []int, unlikeliness float64) {
	i := len(taken)
	if i == len(tokens) {
		if unlikeliness < s.best {
			s.chosen, s.best, s.second = slices.Clone(taken), unlikeliness, s.best
		} else {
			s.second = min(s.second, unlikeliness)
		}
		return
	}
	for n, q := range s.quotes {
		if slices.Contains(taken, n) || !q.address.IsZero() && q.address != tokens[i] {
			continue
		}
		s.match(tokens, append(taken, n), unlikeliness+s.unlikely(q, i))
	}
}

// unlikely is how far a quote is from what a token was worth, as the logarithm of their ratio. Where nothing shows the
// token's worth, the short token of a market is the stable one.
func (s *search) unlikely(q quote, i int) float64 {
	price := q.price.Min.float()
	switch {
	case !q.address.IsZero() || price == 0:
		return 0
	case s.seen[i] == 0:
		if isStable := math.Abs(math.Log(price)) < 0.1; isStable == s.short[i] {
			return 0
		}
		return 1
	}
	return math.Abs(math.Log(price) + float64(30-q.places(s.seen[i]))*math.Ln10 - math.Log(s.seen[i]))
}

// places are a quote's decimals: those that are known, else those that bring its price nearest to what a unit was
// worth.
func (q quote) places(seen float64) int {
	if price := q.price.Min.float(); q.decimals < 0 && price != 0 {
		return 30 - int(math.Round(math.Log10(seen/price)))
	}
	return max(q.decimals, 0)
}

// worth is what a unit of each token is about worth, in USD with 30 decimals: what the exchange's oracle last took for
// it. Where a recording holds no oracle's prices, an index token is worth what the last opened of the open positions
// paid for it.
func (f *fold) worth() map[chain.Address]float64 {
	worth := openedAt(f.book)
	for token, price := range f.oracle {
		worth[token] = price.Min.Float()
	}
	return worth
}

// openedAt is what a unit of each index token was worth when the last opened of the open positions on it was opened, in
// USD with 30 decimals.
func openedAt(book *perp.Book) map[chain.Address]float64 {
	worth, at := map[chain.Address]float64{}, map[chain.Address]chain.Uint{}
	for _, row := range book.Rows(perp.Positions) {
		p := row.(perp.Position) //nolint:forcetypeassert // of the table asked for
		market, known := book.Get(perp.RowKey{Table: perp.Markets, Key: p.Market.Hash()}).(perp.Market)
		if known && !p.SizeInTokens.IsZero() && !p.IncreasedAtTime.Less(at[market.IndexToken]) {
			worth[market.IndexToken], at[market.IndexToken] = p.SizeInUsd.Float()/p.SizeInTokens.Float(),
				p.IncreasedAtTime
		}
	}
	return worth
}

// casePrice is USD per whole token.
type casePrice struct{ Min, Max decimal }

// UnmarshalJSON reads [min, max] or one price for both, each a number or a text.
func (p *casePrice) UnmarshalJSON(text []byte) error {
	var both []decimal
	if err := json.Unmarshal(text, &both); err == nil {
		if len(both) != 2 {
			return fmt.Errorf("price %s: want [min, max]", text)
		}
		p.Min, p.Max = both[0], both[1]
		return nil
	}
	if err := json.Unmarshal(text, &p.Min); err != nil {
		return fmt.Errorf("price %s: want [min, max] in USD per whole token", text)
	}
	p.Max = p.Min
	return nil
}

// decimal is digits·10^exponent.
type decimal struct {
	digits   string
	exponent int
}

var errNoDecimal = errors.New("it is no decimal number")

// doubleDigits is how many decimal digits a 64-bit float keeps. What a program wrote beyond them, as in
// 5199.4800000000005, is its own noise.
const doubleDigits = 15

// UnmarshalJSON reads a text with a decimal, exactly, or a JSON number, to as many digits as its writer could have
// meant: 4599.54 or 1e-05.
func (d *decimal) UnmarshalJSON(text []byte) error {
	written, isText := strings.CutPrefix(string(text), `"`)
	if err := d.parse(strings.TrimSuffix(written, `"`)); err != nil {
		return err
	}
	if isText || len(d.digits) <= doubleDigits {
		return nil
	}
	value, err := strconv.ParseFloat(written, 64)
	if err != nil {
		return errNoDecimal
	}
	return d.parse(strconv.FormatFloat(value, 'e', doubleDigits-1, 64))
}

func (d *decimal) parse(text string) error {
	mantissa, power, scientific := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.digits, d.exponent = strings.TrimLeft(whole+fraction, "0"), -len(fraction)
	if scientific {
		shift, err := strconv.Atoi(power)
		if err != nil || shift < -100 || shift > 100 {
			return errNoDecimal
		}
		d.exponent += shift
	}
	if whole+fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return errNoDecimal
	}
	trimmed := strings.TrimRight(d.digits, "0")
	d.exponent += len(d.digits) - len(trimmed)
	d.digits = trimmed
	return nil
}

// perUnit is the price of a token's smallest unit in USD with 30 decimals. It fails where that is no whole number.
func (d *decimal) perUnit(decimals int) (chain.Uint, error) {
	zeros := d.exponent + 30 - decimals
	if d.digits == "" || zeros < 0 || zeros+len(d.digits) > 78 {
		return chain.Uint{}, fmt.Errorf("%se%d USD cannot be the price of a token of %d decimals", d.digits, d.exponent,
			decimals)
	}
	return chain.ParseUint(d.digits + strings.Repeat("0", zeros))
}

// float is the price per whole token, to tell tokens apart by.
func (d *decimal) float() float64 {
	value, _ := strconv.ParseFloat(fmt.Sprintf("%se%d", d.digits, d.exponent), 64) // a price of no digits is 0
	return value
}
