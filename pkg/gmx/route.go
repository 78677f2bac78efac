package gmx

import (
	"cmp"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
)

// Router finds the routing key that each log belongs to, so that every row has exactly one writing partition:
//
//   - what belongs to an account (orders, positions, requests, bad debts) goes by the account, padded to a word;
//   - what belongs to one market goes by the market, padded;
//   - what belongs to the whole exchange (parameters, oracle sources, virtual inventories that markets share, GLV
//     shifts) goes by the zero word, which is partition 0.
//
// Some events name an order or a position and no account. They are joined within their transaction, then by memory,
// and refused with an [UnknownOwnerError] rather than guessed. What is not understood goes by the account among its
// items, else by the owner of an order or position, else by a market; what names none of them (see unknown.go) as
// belonging to the whole exchange. A Router is for one goroutine at a time.
type Router struct {
	decoder *Decoder
	owners  memory
}

// NewRouter returns a router for logs of the venue's EventEmitters that remembers the owners of at least the given
// number of orders and positions.
func NewRouter(remembered int) *Router {
	return &Router{decoder: NewDecoder(), owners: memory{generation: max(remembered, 1)}}
}

// UnknownOwnerError reports that nothing in a transaction or in memory shows whose order or position a log is about.
// The caller may find out elsewhere, [Router.Learn] it and route again.
type UnknownOwnerError struct {
	Event string
	Key   chain.Hash
	Place
}

// Error implements error.
func (e *UnknownOwnerError) Error() string {
	return fmt.Sprintf("event %s at %s: the account of %s is unknown", e.Event, e.Place, e.Key)
}

// Learn remembers the account of an order or a position; zero if it is nobody's.
func (r *Router) Learn(key chain.Hash, account chain.Address) { r.owners.put(key, account) }

// Route returns the routing key of each log of one transaction. All logs of the transaction must be there.
func (r *Router) Route(logs []chain.Log) ([]chain.Hash, error) {
	t := routing{router: r}
	kinds := make([]*eventKind, len(logs))
	for i := range logs {
		kind, err := r.decoder.identify(&logs[i])
		if _, is := emitterTopics(&logs[i]); err != nil && !is {
			return nil, err
		}
		if kinds[i] = kind; kind != nil {
			t.learnFrom(&logs[i], kind)
		}
	}
	routes := make([]chain.Hash, len(logs))
	for i := range logs {
		route, err := t.route(&logs[i], kinds[i])
		if err != nil {
			return nil, err
		}
		routes[i] = route
	}
	return routes, nil
}

// routing is what the logs of one transaction tell about owners. A transaction names few: a list is searched faster
// than a map is made.
type routing struct {
	router *Router
	reader reader
	owners []owned
}

type owned struct {
	key     chain.Hash
	account chain.Address
}

// learnFrom notes whose orders and positions a log names. What later transactions may name again is remembered beyond
// this one, and forgotten with the order: a reorg that brings it back leaves it to be looked up. From what cannot be
// read nothing is learnt: it goes by its topics, to whoever says what is wrong with it.
func (t *routing) learnFrom(l *chain.Log, kind *eventKind) {
	switch kind.name {
	case "OrderCreated":
		t.router.Learn(l.Topics[2], l.Topics[3].Address())
		t.note(l.Topics[2], l.Topics[3])
	case "OrderExecuted", "OrderCancelled":
		t.note(l.Topics[2], l.Topics[3])
		t.router.owners.forget(l.Topics[2])
	case "OrderFrozen", "OrderUpdated":
		t.note(l.Topics[2], l.Topics[3])
	case "PositionIncrease", "PositionDecrease":
		if t.reader.load(l, kind) != nil {
			return
		}
		order, position := t.reader.hash("orderKey"), t.reader.hash("positionKey")
		if t.reader.err != nil {
			return
		}
		t.router.Learn(position, l.Topics[2].Address())
		t.note(order, l.Topics[2])
		t.note(position, l.Topics[2])
	}
}

func (t *routing) note(key, account chain.Hash) {
	t.owners = append(t.owners, owned{key: key, account: account.Address()})
}

func (t *routing) route(l *chain.Log, kind *eventKind) (chain.Hash, error) {
	if kind == nil {
		return t.routeByItems(l)
	}
	topic := 0
	switch kind.scope {
	case global:
		return chain.Hash{}, nil
	case ofMarket, ofAccount:
		topic = 2
	case ofOwner:
		topic = 3
	case ofKey:
		return t.routeByKey(l, kind, "key")
	case ofOrderKey:
		return t.routeByKey(l, kind, "orderKey")
	}
	if topic >= len(l.Topics) { // only an ignored event may lack its topic: no state follows from where it goes
		return chain.Hash{}, nil
	}
	return l.Topics[topic], nil
}

func (t *routing) routeByKey(l *chain.Log, kind *eventKind, item string) (chain.Hash, error) {
	if err := t.reader.load(l, kind); err != nil {
		return chain.Hash{}, t.reader.fault(err)
	}
	key := t.reader.hash(item)
	if err := t.reader.err; err != nil {
		return chain.Hash{}, t.reader.fault(err)
	}
	if account, known := t.ownerOf(key); known && !account.IsZero() {
		return account.Hash(), nil
	}
	return chain.Hash{}, &UnknownOwnerError{Event: kind.name, Key: key, Place: placeOf(l)}
}

// ownerOf is whose an order or position is; zero if it is known to be nobody's.
func (t *routing) ownerOf(key chain.Hash) (account chain.Address, known bool) {
	for _, o := range slices.Backward(t.owners) {
		if o.key == key {
			return o.account, true
		}
	}
	return t.router.owners.get(key)
}

// routeByItems routes what is not understood. A key that is nobody's is of nothing that has rows: what names nothing
// else goes by it.
func (t *routing) routeByItems(l *chain.Log) (chain.Hash, error) {
	items, err := indexItems(l.Data, nil)
	if err != nil {
		return chain.Hash{}, &DecodeError{Event: l.Topics[1].Hex(), Place: placeOf(l), Cause: err}
	}
	touched := touchedBy(l.Data, items)
	if touched.account.IsZero() && !touched.key.IsZero() {
		account, known := t.ownerOf(touched.key)
		if !known {
			return chain.Hash{}, &UnknownOwnerError{Event: l.Topics[1].Hex(), Key: touched.key, Place: placeOf(l)}
		}
		touched.account = account.Hash()
	}
	return cmp.Or(touched.account, touched.market, touched.key), nil
}

// memory keeps the owners of recent keys in two generations: at least one generation is remembered, never more than
// two.
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

func (m *memory) forget(key chain.Hash) {
	delete(m.recent, key)
	delete(m.former, key)
}

func (m *memory) get(key chain.Hash) (account chain.Address, known bool) {
	if account, known = m.recent[key]; known {
		return account, true
	}
	account, known = m.former[key]
	return account, known
}
