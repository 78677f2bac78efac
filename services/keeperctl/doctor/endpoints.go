package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/txmgr/txm"
)

const (
	// finalLag is how far behind an endpoint's head the block it calls final may be: BSC finalizes within seconds.
	finalLag = time.Minute
	// leastPerSecond is what a scanner, a planner's words and a sender ask of an endpoint in a busy second.
	leastPerSecond = 25
	// throttledShare is the part of all requests, in percent, that may be refused for their number.
	throttledShare = 1
)

var endpointChecks = []check{
	{"endpoint-reachable", "endpoints", false, func(f *Facts, found report) {
		for _, e := range f.Endpoints {
			if !e.Private && e.Down != nil {
				found(warnIf(len(f.usable()) > 0), e.Name, "no answer: "+e.Down.Error(),
					"check address, key and plan at the provider, or name another endpoint in chain.urls")
			}
		}
	}},
	{"endpoint-chain", "endpoints", false, func(f *Facts, found report) {
		for _, e := range f.Endpoints {
			if e.Wrong != nil {
				found(Failure, e.Name, e.Wrong.Error(),
					"remove it from the chain's endpoints, or correct keeper.chain_id and chain.genesis")
			}
		}
	}},
	{"endpoint-lag", "endpoints", false, func(f *Facts, found report) {
		best := f.best()
		for _, e := range f.usable() {
			if behind := span(e.Head.TimeMs, best.TimeMs); behind > f.Settings.MaxLag {
				found(Warning, e.Name,
					fmt.Sprintf("its head %d is %s behind the newest, %d", e.Head.Number, behind, best.Number),
					"it is asked last until it catches up; if it does not, replace it")
			}
		}
	}},
	{"endpoint-finalized", "endpoints", false, func(f *Facts, found report) {
		const fix = "use a node that follows BSC's fast finality (tag finalized)"
		for _, e := range f.usable() {
			if behind := span(e.Final.TimeMs, e.Head.TimeMs); e.FinalError != nil {
				found(Failure, e.Name, "it names no finalized block: "+e.FinalError.Error(), fix)
			} else if behind > finalLag {
				found(Failure, e.Name,
					fmt.Sprintf("what it calls final, %d, is %s behind its head", e.Final.Number, behind), fix)
			}
		}
	}},
	// A failure where no endpoint proves a block: then nothing is published.
	{"endpoint-receipts", "endpoints", false, func(f *Facts, found report) {
		how := warnIf(slices.ContainsFunc(f.usable(), func(e Endpoint) bool { return e.ReceiptsError == nil }))
		for _, e := range f.usable() {
			if e.ReceiptsError != nil {
				found(how, e.Name, "it does not give receipts that prove a block: "+e.ReceiptsError.Error(),
					"use an endpoint that serves eth_getBlockReceipts, and leaves out nothing")
			}
		}
	}},
	{"endpoint-state", "endpoints", false, usableFails(Failure, func(e Endpoint) error { return e.StateError },
		"it does not have the state of the block it calls final",
		"use a node that keeps at least the states of the last 128 blocks")},
	// Endpoints that refuse requests for their number while they are examined.
	{"endpoint-credits", "endpoints", false, func(f *Facts, found report) {
		for _, e := range f.usable() {
			if e.PerSecond > 0 && e.PerSecond < leastPerSecond {
				found(Warning, e.Name, fmt.Sprintf("it takes about %.0f requests a second and refuses the others; a "+
					"busy keeper asks %d", e.PerSecond, leastPerSecond),
					"raise the plan at the provider, or add an endpoint")
			}
		}
	}},
	// The running processes are short of what endpoints give.
	{"endpoint-throttled", "endpoints", true, func(f *Facts, found report) {
		if f.State == nil {
			return
		}
		if s := f.State.Seen; s.Requests >= 1000 && s.Throttled*100 > s.Requests*throttledShare {
			found(Warning, "", fmt.Sprintf("endpoints have refused %.0f of %.0f requests for their number since the "+
				"processes started: credits or the limit a second are used up", s.Throttled, s.Requests),
				"the processes' logs name the endpoint: raise its plan, or add one")
		}
	}},
	{"endpoint-batch", "endpoints", false, usableFails(Warning, func(e Endpoint) error { return e.BatchError },
		"it takes no batch of block headers", "set chain.headers_batch to what the provider takes, or change it")},
	{"endpoint-history", "endpoints", false, func(f *Facts, found report) {
		how := warnIf(slices.ContainsFunc(f.usable(), func(e Endpoint) bool { return e.HistoryError == nil }))
		for _, e := range f.usable() {
			if e.HistoryError != nil {
				found(how, e.Name, fmt.Sprintf("it does not give the receipts of block %d, where the record begins: %v",
					f.Settings.StartBlock, e.HistoryError),
					"at least one endpoint must have the receipts from scanner.start_block on")
			}
		}
	}},
	// About words that are read at the first block; once the record has begun nobody needs them.
	{"endpoint-archive", "endpoints", false, func(f *Facts, found report) {
		usable := f.usable()
		if f.State != nil && f.State.Started || f.Settings.StartBlock == 0 || len(usable) == 0 ||
			slices.ContainsFunc(usable, func(e Endpoint) bool { return e.OldState }) {
			return
		}
		found(Warning, "", fmt.Sprintf("no endpoint has the state of block %d, where the record begins",
			f.Settings.StartBlock), "words that no event carries are read at that block: name an archive "+
			"endpoint for the first start")
	}},
	// What is signed with more gas than calls may use of a block never lands.
	{"block-gas", "endpoints", false, func(f *Facts, found report) {
		for _, e := range f.usable() {
			if e.CallGas > 0 && e.CallGas < txm.MaxGas {
				found(Warning, e.Name, fmt.Sprintf("calls may use %d gas of a block, and a transaction may ask for %d",
					e.CallGas, uint64(txm.MaxGas)),
					"compare with a block explorer: executions that need more never land")
			}
		}
	}},
	{"endpoint-fork", "endpoints", false, forks},
	{"endpoint-agreement", "endpoints", false, disagreeing},
	{"endpoint-disputes", "endpoints", true, func(f *Facts, found report) {
		if f.Topics == nil || len(f.Topics.Disputes) == 0 {
			return
		}
		all := f.Topics.Disputes
		found(Warning, "", fmt.Sprintf("endpoints were caught, or at odds, %d times within the hour, the last: %s",
			len(all), all[len(all)-1]),
			"keeperctl dlq list endpoint shows whom, dlq show OFFSET who said what; replace who does it again")
	}},
	{"endpoint-hosts", "endpoints", false, func(f *Facts, found report) {
		if !f.Development && f.Hosts == 1 {
			found(Warning, "", "all endpoints are at one host: what is final, spent or refused rests on its word alone",
				"name an endpoint of another provider in chain.urls")
		}
	}},
	{"endpoint-private", "endpoints", false, func(f *Facts, found report) {
		for _, e := range f.Endpoints {
			if e.Private && e.Down != nil {
				found(Warning, e.Name, "no answer: "+e.Down.Error(),
					"transactions that must not be seen before they are mined need it (chain.private_urls)")
			}
		}
	}},
}

// usable are the endpoints that answer for this chain, and can be asked more.
func (f *Facts) usable() (list []Endpoint) {
	for _, e := range f.Endpoints {
		if !e.Private && e.Down == nil && e.Wrong == nil {
			list = append(list, e)
		}
	}
	return list
}

// best is the newest head that any endpoint has.
func (f *Facts) best() (best chain.BlockRef) {
	for _, e := range f.usable() {
		if e.Head.TimeMs > best.TimeMs {
			best = e.Head
		}
	}
	return best
}

// CallGas is what calls may use of a block, as the endpoint with the newest head says; 0 where nobody could be asked.
func (f *Facts) CallGas() uint64 {
	best, gas := uint64(0), uint64(0)
	for _, e := range f.usable() {
		if e.CallGas > 0 && e.Head.TimeMs >= best {
			best, gas = e.Head.TimeMs, e.CallGas
		}
	}
	return gas
}

// usableFails finds the endpoints that answered one question with an error.
func usableFails(how Severity, failed func(Endpoint) error, seen, fix string) func(*Facts, report) {
	return func(f *Facts, found report) {
		for _, e := range f.usable() {
			if err := failed(e); err != nil {
				found(how, e.Name, seen+": "+err.Error(), fix)
			}
		}
	}
}

// forks finds the endpoints that will miss a fork, by what they call themselves, and those that have missed one, by
// their heads.
func forks(f *Facts, found report) {
	const fix = "have the provider upgrade it before the fork, or name another endpoint in chain.urls"
	for _, e := range f.usable() {
		for _, fork := range e.Forks {
			at := uint64(fork.At.UnixMilli())
			switch readiness := fork.Readiness(e.Software); {
			case f.best().TimeMs >= at && e.Head.TimeMs < at:
				found(Failure, e.Name,
					fmt.Sprintf("its head %d has stayed before the fork %s, and others have passed it", e.Head.Number,
						fork), "remove it from chain.urls until it is upgraded")
			case f.best().TimeMs >= at:
			case readiness == evm.Outdated:
				found(Warning, e.Name, fork.Misses(e.Software), fix)
			case readiness == evm.ReadinessUnknown:
				found(Warning, e.Name, fmt.Sprintf("whether its software, %.100q, knows the fork %s is not known",
					e.Software, fork), "ask the provider")
			}
		}
	}
}

// disagreeing names those that differ from the hash most endpoints have for a settled block; where no hash has more
// than another, all of them.
func disagreeing(f *Facts, found report) {
	votes := map[chain.Hash]int{}
	asked := slices.DeleteFunc(f.usable(), func(e Endpoint) bool { return e.SettledNumber == 0 })
	for _, e := range asked {
		votes[e.Settled]++
	}
	if len(votes) < 2 {
		return
	}
	most := slices.MaxFunc(asked, func(a, b Endpoint) int { return cmp.Compare(votes[a.Settled], votes[b.Settled]) })
	tied := 0
	for _, n := range votes {
		if n == votes[most.Settled] {
			tied++
		}
	}
	for _, e := range asked {
		if tied > 1 || e.Settled != most.Settled {
			found(Failure, e.Name,
				fmt.Sprintf("it has %s for the settled block %d, and others have another", e.Settled, e.SettledNumber),
				"compare with a block explorer, and remove the one that is wrong")
		}
	}
}

// span is the time from one moment of the chain to a later one, both in Unix milliseconds; 0 where it is none.
func span(fromMs, toMs uint64) time.Duration {
	return time.Duration(toMs-min(fromMs, toMs)) * time.Millisecond
}
