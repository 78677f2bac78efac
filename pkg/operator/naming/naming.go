// Package naming gives operators the names that people use: a token's symbol, a market by its tokens, prices in dollars
// and amounts in whole tokens. Symbols and decimals are the contracts' own, read from the chain once; which tokens a
// market has is the state's.
//
// Guaranteed: a name is an answer at once, from memory. What is not known, or not yet, is named by its address.
// Not guaranteed: that a symbol tells the truth. Whoever makes a token chooses it, so that the address stands beside.
package naming

import (
	"context"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/operator/contract"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/perp"
)

// Node is what is asked of the chain.
type Node interface {
	contract.Caller
	Head(ctx context.Context) (chain.BlockRef, error)
}

// State is what is asked of the database.
type State interface {
	Markets(ctx context.Context) ([]perp.Market, error)
}

// Names are those of one venue. They are safe for concurrent use; a nil *Names knows none.
type Names struct {
	node  Node // nil: nobody says what tokens are called
	state State

	mutex   sync.Mutex
	tokens  map[chain.Address]token
	markets map[chain.Address]perp.Market
	next    time.Time // not asked again before
}

// token is what a contract says of itself.
type token struct {
	symbol   string // empty where it says none
	decimals int    // negative where it says none, as of a token that only has a price
}

// New returns names that nothing is known of yet. A nil node is asked nothing.
func New(node Node, state State) *Names {
	return &Names{node: node, state: state, tokens: map[chain.Address]token{},
		markets: map[chain.Address]perp.Market{}}
}

// askAgain is when the state is read again for new markets and tokens are asked for again that could not be, askFor for
// how long, and asking how many at the same time.
const (
	askAgain = time.Minute
	askFor   = 10 * time.Second
	asking   = 4
)

// Learn reads what is new in the background, once a minute at most: nobody waits for it. What cannot be read is read
// the next time.
func (n *Names) Learn(ctx context.Context) {
	if n == nil {
		return
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if time.Now().Before(n.next) {
		return
	}
	n.next = time.Now().Add(askAgain)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
		defer cancel()
		n.Read(ctx)
	}()
}

// Read reads what is new, and returns when that is done or ctx ends. What cannot be read stays unknown.
func (n *Names) Read(ctx context.Context) {
	markets, err := n.state.Markets(ctx)
	if err != nil {
		return
	}
	unknown := map[chain.Address]bool{}
	n.mutex.Lock()
	for _, m := range markets {
		n.markets[m.MarketToken] = m
		for _, t := range m.Tokens() {
			if _, asked := n.tokens[t]; !asked && !t.IsZero() {
				unknown[t] = true
			}
		}
	}
	n.mutex.Unlock()
	if n.node == nil || len(unknown) == 0 {
		return
	}
	head, err := n.node.Head(ctx)
	if err != nil {
		return
	}
	var group errgroup.Group
	group.SetLimit(asking)
	for t := range unknown {
		group.Go(func() error { return n.ask(ctx, contract.Asker{Node: n.node, Block: head.Hash}, t) })
	}
	_ = group.Wait() // what has failed is asked for again
}

func (n *Names) ask(ctx context.Context, at contract.Asker, address chain.Address) error {
	symbol, err := gmx.Symbol(ctx, at, address)
	if err != nil {
		return err
	}
	decimals, known, err := gmx.Decimals(ctx, at, address)
	if err != nil {
		return err
	}
	if !known {
		decimals = -1
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.tokens[address] = token{symbol, decimals}
	return nil
}

func (n *Names) of(address chain.Address) token {
	if n == nil {
		return token{decimals: -1}
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if t, known := n.tokens[address]; known {
		return t
	}
	return token{decimals: -1}
}

func (n *Names) market(address chain.Address) (m perp.Market, known bool) {
	if n == nil {
		return m, false
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	m, known = n.markets[address]
	return m, known
}

// Token is a token's symbol, or its address with the middle left out.
func (n *Names) Token(address chain.Address) string {
	if symbol := n.of(address).symbol; symbol != "" {
		return symbol
	}
	return text.Short(address)
}

// wraps are tokens that stand for a coin, by what a price of theirs is called after.
var wraps = map[string]string{"WETH": "ETH", "WBTC": "BTC", "BTCB": "BTC", "WBNB": "BNB"}

// Market is a market as front ends call it, such as ETH/USD [WETH-USDC]; one that only swaps has no price before it.
// One that is not known, or whose tokens have no symbols, is an address with the middle left out.
func (n *Names) Market(address chain.Address) string {
	m, known := n.market(address)
	if !known || n.of(m.LongToken).symbol == "" {
		return text.Short(address)
	}
	pool := " [" + n.Token(m.LongToken) + "-" + n.Token(m.ShortToken) + "]"
	if m.IndexToken.IsZero() {
		return "swap only" + pool
	}
	index := n.Token(m.IndexToken)
	if coin, is := wraps[index]; is {
		index = coin
	}
	return index + "/USD" + pool
}

// Index is the token whose price a market's positions are of, and zero where the market is not known.
func (n *Names) Index(market chain.Address) chain.Address {
	m, _ := n.market(market)
	return m.IndexToken
}

// Price is what a token costs in dollars, of USD with 30 decimals for its smallest unit. Where nobody says how many of
// these a token has, it is the price of one, and says so.
func (n *Names) Price(address chain.Address, price chain.Uint) string {
	if decimals := n.of(address).decimals; decimals >= 0 {
		return text.Price(price, decimals)
	}
	return text.Price(price, 0) + " a smallest unit"
}

// Amount is how much of a token there is, of its smallest unit.
func (n *Names) Amount(address chain.Address, amount chain.Uint) string {
	if decimals := n.of(address).decimals; decimals >= 0 {
		return text.Grouped(amount.Decimal(decimals)) + " " + n.Token(address)
	}
	return text.Grouped(amount.String()) + " smallest units of " + n.Token(address)
}

// name is what an address is known by; empty where it is by nothing else.
func (n *Names) name(address chain.Address) string {
	name := n.Market(address)
	if name == text.Short(address) {
		name = n.of(address).symbol
	}
	return name
}

// Piece is a part of a text. One that is an address or a hash has its digits in Full, and what people call it in Text.
type Piece struct {
	Text, Full string
	// Page is where an explorer of the chain shows it; empty where nobody does.
	Page string
}

// digits are addresses, hashes, and those of them that are said to be a transaction's.
var digits = regexp.MustCompile(`\b(tx )?(0x(?:[0-9a-fA-F]{64}|[0-9a-fA-F]{40}))\b`)

// Pieces cuts a text where addresses and hashes stand in it: those of tokens and markets have their names, others have
// their middle left out.
func (n *Names) Pieces(chainID uint64, said string) (pieces []Piece) {
	last := 0
	for _, at := range digits.FindAllStringSubmatchIndex(said, -1) {
		full := said[at[4]:at[5]]
		p := Piece{Text: text.Short(full), Full: full}
		if address, err := chain.ParseAddress(full); err == nil {
			p.Page = Explorer(chainID, "address", full)
			if name := n.name(address); name != "" {
				p.Text = name
			}
		} else if at[2] >= 0 {
			p.Page = Explorer(chainID, "tx", full)
		}
		pieces = append(pieces, Piece{Text: said[last:at[4]]}, p)
		last = at[5]
	}
	return append(pieces, Piece{Text: said[last:]})
}

// In is a text in which tokens and markets have their names before their addresses, for where nothing but text can be
// shown.
func (n *Names) In(said string) string {
	return digits.ReplaceAllStringFunc(said, func(full string) string {
		address, err := chain.ParseAddress(full)
		if name := n.name(address); err == nil && name != "" {
			return name + " (" + full + ")"
		}
		return full
	})
}

// explorers are sites that show a chain to people.
var explorers = map[uint64]string{56: "https://bscscan.com", 97: "https://testnet.bscscan.com"}

// Explorer is where people see an address, a tx or a block of a chain; empty where no site is known to show it.
func Explorer(chainID uint64, kind, which string) string {
	if site := explorers[chainID]; site != "" {
		return site + "/" + kind + "/" + which
	}
	return ""
}
