package planner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// dueRequests returns the jobs of deposits, withdrawals and shifts that wait, until they expire.
func (f *finder) dueRequests(w world) (due []job.Job) {
	for _, r := range w.requests {
		window := perp.RequestWindow(r, w.expiration())
		if !r.Status.Pending() || w.block.TimeMs > window.To*1000 {
			continue
		}
		tokens, complete := w.tokens(requestMarkets(r)...)
		if !complete {
			continue
		}
		kind := job.OfRequest(r.Kind)
		due = append(due, job.Job{
			ID: job.RequestID(kind, r.Key), Kind: kind, Key: r.Key, Account: r.Account, Market: r.Market, Tokens: tokens,
			Class: job.ClassRequest, BirthMs: r.Birth.TimeMs, ExpiresMs: window.To * 1000, Evidence: job.Evidence{Reason: "request waits"},
		})
	}
	return due
}

// requestMarkets are the markets an execution touches, by the names of the Created events.
func requestMarkets(r perp.Request) []chain.Address {
	markets := []chain.Address{r.Market}
	if to, ok := r.Fields["toMarket"].(chain.Address); ok {
		markets = append(markets, to)
	}
	for _, path := range []string{"longTokenSwapPath", "shortTokenSwapPath"} {
		if addresses, ok := r.Fields[path].([]chain.Address); ok {
			markets = append(markets, addresses...)
		}
	}
	return markets
}
