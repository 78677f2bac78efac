package due

import (
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Request decides about executing a deposit, withdrawal or shift, of a market or of a GLV: due from its creation until
// it expires.
func (m *Moment) Request(r perp.Request) Decision {
	kind := job.Kind(r.Kind)
	d := Decision{Job: job.Job{
		ID: job.RequestID(kind, r.Key), Kind: kind, Key: r.Key, Account: r.Account, Market: r.Market,
		Class: job.ClassRequest,
	}}
	if !r.Status.Pending() {
		return d.not("it is %s", r.Status)
	}
	window := perp.RequestWindow(r, m.expiration())
	if m.Block.TimeMs > window.To*1000 {
		return d.late(window.To)
	}
	if why := m.disabled(append([]chain.Address{r.Market}, r.OtherMarkets()...)); why != nil {
		return d.not("%v: the venue would cancel the request", why)
	}
	tokens, err := m.tokens(m.requestMarkets(r)...)
	if err != nil {
		return d.not("%v", err)
	}
	d.Job.Tokens, d.Job.DueSinceMs, d.Job.ExpiresMs = tokens, r.Birth.TimeMs, window.To*1000
	return d.yes(m, "request waits")
}

// requestMarkets are the markets an execution touches: for a GLV, every market it holds.
func (m *Moment) requestMarkets(r perp.Request) []chain.Address {
	return slices.Concat([]chain.Address{r.Market}, m.Glvs[r.Glv()], r.OtherMarkets())
}
