package scanner

import (
	"github.com/rs/zerolog"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
)

// followVenue follows the exchange's contracts on the chain. Where an EventEmitter is configured, that is all there is.
func followVenue(cfg gmx.Config, node *evm.Client, log zerolog.Logger) *gmx.Follower {
	if !cfg.EventEmitter.IsZero() {
		return gmx.Fixed(gmx.Venue{DataStore: cfg.DataStore, Handlers: []gmx.Handler{{EventEmitter: cfg.EventEmitter}}})
	}
	return gmx.Follow(cfg.DataStore, nil, node, log)
}

// filter chooses the logs of the exchange, of those that emit by another contract since an upgrade as well.
func (c *collector) filter() evm.Filter {
	return evm.Filter{Addresses: c.venue.EventEmitters(), Topics: gmx.Topics()[0]}
}
