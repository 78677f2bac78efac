package sources

import (
	"cmp"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/aggregator"
	"perpkeeper/pkg/price/source/devnet"
	"perpkeeper/pkg/price/source/gmx"
	"perpkeeper/pkg/price/source/streams"
)

// plugins are the kinds of services that can be read. A new one is a line here.
var plugins = []source.Plugin{
	devnet.Plugin,
	gmx.Plugin,
	streams.Plugin,
	aggregator.Plugin,
}

func pluginOf(kind string) (p source.Plugin, known bool) {
	for _, p := range plugins {
		if p.Kind == kind {
			return p, true
		}
	}
	return source.Plugin{}, false
}

func kinds() (names []string) {
	for _, p := range plugins {
		names = append(names, p.Kind)
	}
	return names
}

// Open makes the sources of a valid configuration, in order of preference, and what drops their idle connections.
// Nothing is asked yet. The chain is for aggregators, and, with the exchange's DataStore, for what the exchange makes
// of the prices: without it (zero) reports are as the services give them.
func Open(cfg Config, node source.Caller, dataStore chain.Address) (members []price.Member, closeIdle func()) {
	var clients []*source.Client
	for _, t := range cfg.tables() {
		m := price.Member{Name: t.Name, MaxAge: t.MaxAge, After: t.FailAfter}
		for _, token := range t.Tokens {
			m.Tokens = append(m.Tokens, token.Address)
		}
		t.Interval = cmp.Or(t.Interval, cfg.Interval)
		t.FailAfter, t.MaxAge = cmp.Or(t.FailAfter, cfg.Failover.After), cmp.Or(t.MaxAge, cfg.Gates.MaxAge)
		c := source.NewClient(t.URL, cfg.RequestTimeout)
		p, _ := pluginOf(t.Kind) // the configuration was checked
		m.Source = p.Source(t, source.Env{Client: c, Node: node, DataStore: dataStore, Timeout: cfg.RequestTimeout})
		clients, members = append(clients, c), append(members, m)
	}
	return members, func() {
		for _, c := range clients {
			c.Close()
		}
	}
}
