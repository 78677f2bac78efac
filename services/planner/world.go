package planner

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/wire"
)

// world is everything one pass looks at: state at one block, and the newest reports. It is never changed.
type world struct {
	block      chain.BlockRef
	generation uint32
	rows       perp.Rows // markets, measures and parameters of every shard
	positions  []perp.Position
	orders     []perp.Order
	requests   []perp.Request
	reports    map[chain.Address]wire.Price
}

// expiration is how long the venue accepts reports for a market order or request, in seconds.
func (w world) expiration() uint64 {
	const venueDefault = 300 // config/general.ts of the contracts
	p, known := w.rows.Get(perp.RowKey{Table: perp.Parameters, Key: perp.DataStoreKey("REQUEST_EXPIRATION_TIME")}).(perp.Parameter)
	if seconds, fits := p.Uint().Uint64(); known && fits {
		return seconds
	}
	return venueDefault
}

func (w world) market(token chain.Address) (perp.Market, bool) {
	m, known := w.rows.Get(perp.RowKey{Table: perp.Markets, Key: token.Hash()}).(perp.Market)
	return m, known
}

// tokens returns the tokens whose reports an execution needs: those of its market and of every market on its swap path, each once.
func (w world) tokens(markets ...chain.Address) (tokens []chain.Address, complete bool) {
	seen := map[chain.Address]bool{}
	for _, address := range markets {
		m, known := w.market(address)
		if !known {
			return nil, false
		}
		for _, token := range m.Tokens() {
			if !seen[token] && !token.IsZero() {
				seen[token] = true
				tokens = append(tokens, token)
			}
		}
	}
	return tokens, true
}

func (w world) prices() map[chain.Address]perp.Price {
	prices := make(map[chain.Address]perp.Price, len(w.reports))
	for token, r := range w.reports {
		prices[token] = perp.Price{Min: r.Min, Max: r.Max}
	}
	return prices
}

// position returns the open position an order would act on.
func (w world) openPositions() map[chain.Hash]perp.Position {
	open := make(map[chain.Hash]perp.Position, len(w.positions))
	for _, p := range w.positions {
		if p.Status == perp.Active {
			open[p.PositionKey] = p
		}
	}
	return open
}

// reportIDs names the reports of tokens that a decision was made with.
func (w world) reportIDs(tokens []chain.Address) []string {
	ids := make([]string, 0, len(tokens))
	for _, token := range tokens {
		if r, known := w.reports[token]; known {
			ids = append(ids, fmt.Sprintf("%s@%d", r.Token, r.TimeMs))
		}
	}
	return ids
}
