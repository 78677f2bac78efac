package gmx

import (
	"fmt"

	"perpkeeper/pkg/chain"
)

// Router says which routing key each log belongs to, so that every row has exactly one writing partition:
//
//   - what belongs to an account (orders, positions, requests, bad debts) goes by the account, padded to a word;
//   - what belongs to one market goes by the market, padded;
//   - what belongs to the whole exchange (parameters, oracle sources, virtual inventories that markets share, GLV shifts) goes by the zero
//     word, which is partition 0.
//
// Some events name an order or a position and no account. They are joined within their transaction, then by memory, and refused with an
// [UnknownOwnerError] rather than guessed. A Router is for one goroutine at a time.
type Router struct {
	decoder *Decoder
	owners  memory
}

// NewRouter returns a router for the logs of an EventEmitter that remembers the owners of at least the given number of orders and
// positions.
func NewRouter(emitter chain.Address, remembered int) *Router {
	return &Router{decoder: NewDecoder(emitter), owners: memory{generation: max(remembered, 1)}}
}

// UnknownOwnerError says that nothing in a transaction or in memory tells whose order or position a log is about. The caller may find out
// elsewhere, [Router.Learn] it and route again.
type UnknownOwnerError struct {
	Event string
	Key   chain.Hash
	Place
}

// Error implements error.
func (e *UnknownOwnerError) Error() string {
	return fmt.Sprintf("event %s at %s: the account of %s is unknown", e.Event, e.Place, e.Key)
}

// Learn remembers the account of an order or a position.
func (r *Router) Learn(key chain.Hash, account chain.Address) { r.owners.put(key, account) }

// Route returns the routing key of each log of one transaction. All logs of the transaction must be there.
func (r *Router) Route(logs []chain.Log) ([]chain.Hash, error) {
	kinds := make([]eventKind, len(logs))
	joined := map[chain.Hash]chain.Address{}
	for i, l := range logs {
		kind, err := r.decoder.identify(l)
		if err != nil {
			return nil, err
		}
		kinds[i] = kind
		if err := r.learnFrom(l, kind, joined); err != nil {
			return nil, err
		}
	}
	routes := make([]chain.Hash, len(logs))
	for i, l := range logs {
		route, err := r.route(l, kinds[i], joined)
		if err != nil {
			return nil, err
		}
		routes[i] = route
	}
	return routes, nil
}

// learnFrom notes whose orders and positions a log names. What later transactions may name again is remembered beyond this one.
func (r *Router) learnFrom(l chain.Log, kind eventKind, joined map[chain.Hash]chain.Address) error {
	switch kind.name {
	case "OrderCreated":
		r.Learn(l.Topics[2], l.Topics[3].Address())
		joined[l.Topics[2]] = l.Topics[3].Address()
	case "OrderExecuted", "OrderCancelled", "OrderFrozen", "OrderUpdated":
		joined[l.Topics[2]] = l.Topics[3].Address()
	case "PositionIncrease", "PositionDecrease":
		keys, err := hashItems(l, kind.name, "orderKey", "positionKey")
		if err != nil {
			return err
		}
		r.Learn(keys[1], l.Topics[2].Address())
		joined[keys[0]], joined[keys[1]] = l.Topics[2].Address(), l.Topics[2].Address()
	}
	return nil
}

func (r *Router) route(l chain.Log, kind eventKind, joined map[chain.Hash]chain.Address) (chain.Hash, error) {
	topic := 0
	switch kind.scope {
	case global:
		return chain.Hash{}, nil
	case ofMarket, ofAccount:
		topic = 2
	case ofOwner:
		topic = 3
	case ofKey:
		return r.routeByKey(l, kind.name, "key", joined)
	case ofOrderKey:
		return r.routeByKey(l, kind.name, "orderKey", joined)
	}
	if topic >= len(l.Topics) { // only an ignored event may lack its topic: no state follows from where it goes
		return chain.Hash{}, nil
	}
	return l.Topics[topic], nil
}

func (r *Router) routeByKey(l chain.Log, event, item string, joined map[chain.Hash]chain.Address) (chain.Hash, error) {
	keys, err := hashItems(l, event, item)
	if err != nil {
		return chain.Hash{}, err
	}
	if account, ok := joined[keys[0]]; ok {
		return account.Hash(), nil
	}
	if account, ok := r.owners.get(keys[0]); ok {
		return account.Hash(), nil
	}
	return chain.Hash{}, &UnknownOwnerError{Event: event, Key: keys[0], Place: placeOf(l)}
}

// hashItems reads items of one event that are words.
func hashItems(l chain.Log, event string, names ...string) ([]chain.Hash, error) {
	items, err := eventItems(l.Data)
	r := &reader{log: l, items: items, err: err}
	words := make([]chain.Hash, len(names))
	for i, name := range names {
		words[i] = r.hash(name)
	}
	if r.err != nil {
		return nil, &DecodeError{Event: event, Place: placeOf(l), Cause: r.err}
	}
	return words, nil
}

// memory keeps the owners of recent keys in two generations: at least one generation is remembered, never more than two.
type memory struct {
	generation     int
	recent, former map[chain.Hash]chain.Address
}

func (m *memory) put(key chain.Hash, account chain.Address) {
	if m.recent == nil || len(m.recent) >= m.generation {
		m.former, m.recent = m.recent, make(map[chain.Hash]chain.Address)
	}
	m.recent[key] = account
}

func (m *memory) get(key chain.Hash) (account chain.Address, known bool) {
	if account, known = m.recent[key]; known {
		return account, true
	}
	account, known = m.former[key]
	return account, known
}
