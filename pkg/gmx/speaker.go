package gmx

import (
	"slices"

	"perpkeeper/pkg/chain"
)

// Speaker returns who spoke where a log of the EventEmitter is one that the venue's handlers write: of funding, orders
// and requests. The versions of two handlers may differ (perp.HandlerVersion), and so do the rules of what they report.
func Speaker(l chain.Log) (handler chain.Address, is bool) {
	if _, ok := emitterTopics(&l); !ok || len(l.Data) < len(chain.Hash{}) {
		return handler, false
	}
	kind, known := eventKinds[l.Topics[1]]
	if !known || kind.scope != ofOwner && kind.name != "Funding" {
		return handler, false
	}
	handler = sender(&l)
	return handler, !handler.IsZero()
}

// Speakers are the handlers that speak in logs, each once.
func Speakers(logs []chain.Log) (handlers []chain.Address) {
	for _, l := range logs {
		if handler, is := Speaker(l); is && !slices.Contains(handlers, handler) {
			handlers = append(handlers, handler)
		}
	}
	return handlers
}

// sender is the msgSender of an EventLog, the first word of its data.
func sender(l *chain.Log) chain.Address { return chain.Hash(l.Data[:len(chain.Hash{})]).Address() }
