package due

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Quote is the newest report of a token that may be judged with.
type Quote struct {
	perp.Price
	TimeMs uint64 // the source's own time
	ID     string // names the report, for evidence
	Stuck  string // why nothing with the token can be executed, whatever is sent; empty where that is not so
}

// Second is the report's time as the contracts see it.
func (q Quote) Second() uint64 { return q.TimeMs / 1000 }

// Rules are what this venue and this keeper can do (LIQ-5, LIQ-13): capabilities, not code.
type Rules struct {
	// FireRatio is the margin ratio below which the venue liquidates: 1 by GMX's rule, as a 30-decimal factor.
	FireRatio chain.Uint
	// FrozenRole is true when this keeper's signers may execute frozen orders.
	FrozenRole bool
	// AdlRole is true when they may deleverage.
	AdlRole bool
	// CancelExpired is true when this keeper cancels what expired, at its own cost.
	CancelExpired bool
}

// PriceMaxAge is the age beyond which a report is not judged with.
const PriceMaxAge = 30 * time.Second

// Moment is everything a decision depends on besides its object. It is never changed once it is used; all methods may
// be called concurrently.
type Moment struct {
	Block      chain.BlockRef // the state's
	Generation uint32
	Rows       perp.Rows // markets, measures and parameters of the whole venue
	Glvs       Glvs
	Quotes     map[chain.Address]Quote
	Rules      Rules
	// At is the second decisions are made for; zero = that of the newest of block and reports, because what is decided
	// now is executed later than both.
	At uint64

	once   sync.Once
	priced map[chain.Address]perp.Price
	view   *perp.View
}

// Quoted gives a moment that nobody has used yet its reports: the newest of each token that is no older than maxAge at
// the time of the block. It returns the moment.
func (m *Moment) Quoted(tokens func(yield func(chain.Address) bool), maxAge time.Duration,
	newest func(chain.Address) (Quote, bool)) *Moment {
	m.Quotes = map[chain.Address]Quote{}
	oldest := m.Block.TimeMs - min(m.Block.TimeMs, uint64(maxAge.Milliseconds()))
	for token := range tokens {
		if q, known := newest(token); known && q.TimeMs >= oldest {
			m.Quotes[token] = q
		}
	}
	return m
}

// Seconds is the second decisions are made for.
func (m *Moment) Seconds() uint64 {
	if m.At != 0 {
		return m.At
	}
	now := m.Block.TimeMs / 1000
	for _, q := range m.Quotes {
		now = max(now, q.Second())
	}
	return now
}

// View is the venue's risk at the moment.
func (m *Moment) View() *perp.View {
	m.once.Do(m.look)
	return m.view
}

// prices are those of all tokens with a report that may be judged with.
func (m *Moment) prices() map[chain.Address]perp.Price {
	m.once.Do(m.look)
	return m.priced
}

func (m *Moment) look() {
	m.priced = make(map[chain.Address]perp.Price, len(m.Quotes))
	for token, q := range m.Quotes {
		m.priced[token] = q.Price
	}
	m.view = perp.NewView(perp.Circumstances{Rows: m.Rows, Prices: m.priced, Time: m.Seconds(),
		FireRatio: m.Rules.FireRatio})
}

// Market returns a market.
func (m *Moment) Market(token chain.Address) (perp.Market, bool) {
	row, known := m.Rows.Get(perp.RowKey{Table: perp.Markets, Key: token.Hash()}).(perp.Market)
	return row, known
}

// disabled returns an error that names the first of these markets in which the venue executes nothing at present.
func (m *Moment) disabled(markets []chain.Address) error {
	for _, market := range markets {
		if perp.Disabled(m.Rows, market) {
			return fmt.Errorf("market %s is disabled", market)
		}
	}
	return nil
}

// index returns the newest report of a market's index token.
func (m *Moment) index(market perp.Market) (Quote, error) {
	q, known := m.Quotes[market.IndexToken]
	if !known {
		return Quote{}, fmt.Errorf("there is no fresh price report of %s", market.IndexToken)
	}
	return q, nil
}

// tokens returns the tokens whose reports an execution needs: those of the markets it touches, each once. It is an
// error where the venue would refuse every execution with one of them.
func (m *Moment) tokens(markets ...chain.Address) (tokens []chain.Address, err error) {
	for _, address := range markets {
		market, known := m.Market(address)
		if !known {
			return nil, fmt.Errorf("market %s is not known to the state", address)
		}
		for _, token := range market.Tokens() {
			if why := m.Quotes[token].Stuck; why != "" {
				return nil, errors.New(why)
			}
			if !token.IsZero() && !slices.Contains(tokens, token) {
				tokens = append(tokens, token)
			}
		}
	}
	return tokens, nil
}

var requestExpiration = perp.RowKey{Table: perp.Parameters, Key: perp.DataStoreKey("REQUEST_EXPIRATION_TIME")}

// expiration is how long the venue accepts reports for a market order or request, in seconds.
func (m *Moment) expiration() uint64 {
	const venueDefault = 300 // config/general.ts of the contracts
	p, known := m.Rows.Get(requestExpiration).(perp.Parameter)
	if seconds, fits := p.Uint().Uint64(); known && fits {
		return seconds
	}
	return venueDefault
}

// evidence names the moment and the reports a decision was made with.
func (m *Moment) evidence(tokens []chain.Address, reason string) job.Evidence {
	reports := make([]string, 0, len(tokens))
	for _, token := range tokens {
		if q, known := m.Quotes[token]; known {
			reports = append(reports, q.ID)
		}
	}
	return job.Evidence{Block: m.Block, Generation: m.Generation, Reports: reports, Reason: reason}
}
