package source

import (
	"cmp"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
)

// The kinds of sources.
const (
	devnetKind     = "devnet"
	gmxKind        = "gmx"
	streamsKind    = "streams"
	hermesKind     = "hermes"
	aggregatorKind = "aggregator"
)

var kinds = []string{devnetKind, gmxKind, streamsKind, hermesKind, aggregatorKind}

// Open makes the sources of a valid configuration, in order of preference, and what drops their idle connections.
// Nothing is asked yet. The chain is for aggregators.
func Open(cfg Config, node Caller) (members []price.Member, closeIdle func()) {
	var clients []*client
	for _, t := range cfg.tables() {
		t.Interval = cmp.Or(t.Interval, cfg.Interval)
		c := newClient(t.URL, cfg.RequestTimeout)
		clients = append(clients, c)
		m := price.Member{Name: t.Name, MaxAge: t.MaxAge, After: t.FailAfter}
		for _, token := range t.Tokens {
			m.Tokens = append(m.Tokens, token.Address)
		}
		idle := cmp.Or(t.FailAfter, cfg.Failover.After)
		switch t.Kind {
		case devnetKind:
			m.Source = &devnet{client: c, interval: t.Interval, idle: idle, wanted: wantedOf(m.Tokens)}
		case gmxKind:
			m.Source = &signedPrices{client: c, interval: t.Interval, provider: t.Provider, wanted: wantedOf(m.Tokens)}
		case streamsKind:
			m.Source = newStreams(c, t, idle, cmp.Or(t.MaxAge, cfg.Gates.MaxAge))
		case hermesKind:
			m.Source = newHermes(c, t, idle)
		case aggregatorKind:
			m.Source = newAggregator(node, t, cfg.RequestTimeout)
		}
		members = append(members, m)
	}
	return members, func() {
		for _, c := range clients {
			c.http.CloseIdleConnections()
		}
	}
}

// wanted are the tokens a source is asked for; none means all.
type wanted map[chain.Address]bool

func wantedOf(tokens []chain.Address) wanted {
	w := wanted{}
	for _, t := range tokens {
		w[t] = true
	}
	return w
}

func (w wanted) has(token chain.Address) bool { return len(w) == 0 || w[token] }
