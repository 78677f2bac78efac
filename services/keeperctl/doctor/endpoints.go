package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
)

// finalLag is how far behind an endpoint's head the block it calls final may be: BSC finalizes within seconds.
const finalLag = time.Minute

// leastLogs is the least number of blocks of logs at once with which a history is read within hours.
const leastLogs = 100

func endpointChecks() []check {
	return []check{
		{"endpoint-reachable", "endpoints", false, unreachable},
		{"endpoint-chain", "endpoints", false, otherChain},
		{"endpoint-lag", "endpoints", false, lagging},
		{"endpoint-finalized", "endpoints", false, withoutFinal},
		{"endpoint-logs", "endpoints", false, usableFails(Failure, func(e Endpoint) error { return e.LogsError },
			"it does not give the logs of a block by its hash",
			"use an endpoint that serves eth_getLogs with blockHash")},
		{"endpoint-receipts", "unproven", false, withoutReceipts},
		{"endpoint-state", "endpoints", false, usableFails(Failure, func(e Endpoint) error { return e.StateError },
			"it does not have the state of the block it calls final",
			"use a node that keeps at least the states of the last 128 blocks")},
		{"endpoint-credits", "endpoints", false, fewCredits},
		{"endpoint-throttled", "endpoints", true, throttled},
		{"endpoint-batch", "endpoints", false, usableFails(Warning, func(e Endpoint) error { return e.BatchError },
			"it takes no batch of block headers", "set chain.headers_batch to what the provider takes, or change it")},
		{"endpoint-range", "endpoints", false, narrowRange},
		{"endpoint-history", "endpoints", false, withoutHistory},
		{"endpoint-archive", "words", false, withoutArchive},
		{"endpoint-agreement", "endpoints", false, disagreeing},
		{"endpoint-hosts", "endpoints", false, oneHost},
		{"endpoint-private", "endpoints", false, privateFails},
	}
}

// usable are the endpoints that answer for this chain, and can be asked more.
func (f *Facts) usable() (list []Endpoint) {
	for _, e := range f.Endpoints {
		if e.usable() {
			list = append(list, e)
		}
	}
	return list
}

func unreachable(f *Facts) (found []fault) {
	how := Warning
	if len(f.usable()) == 0 {
		how = Failure
	}
	for _, e := range f.Endpoints {
		if !e.Private && e.Down != nil {
			found = append(found, fault{how, e.Name, "no answer: " + e.Down.Error(),
				"check address, key and plan at the provider, or name another endpoint in chain.urls"})
		}
	}
	return found
}

func otherChain(f *Facts) (found []fault) {
	for _, e := range f.Endpoints {
		if e.Wrong != nil {
			found = append(found, fault{Failure, e.Name, e.Wrong.Error(),
				"remove it from the chain's endpoints, or correct keeper.chain_id and chain.genesis"})
		}
	}
	return found
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

func lagging(f *Facts) (found []fault) {
	best := f.best()
	for _, e := range f.usable() {
		if behind := span(e.Head.TimeMs, best.TimeMs); behind > f.Settings.MaxLag {
			found = append(found, fault{Warning, e.Name,
				fmt.Sprintf("its head %d is %s behind the newest, %d", e.Head.Number, behind, best.Number),
				"it is asked last until it catches up; if it does not, replace it"})
		}
	}
	return found
}

func withoutFinal(f *Facts) (found []fault) {
	for _, e := range f.usable() {
		var seen string
		switch behind := span(e.Final.TimeMs, e.Head.TimeMs); {
		case e.FinalError != nil:
			seen = "it names no finalized block: " + e.FinalError.Error()
		case behind > finalLag:
			seen = fmt.Sprintf("what it calls final, %d, is %s behind its head", e.Final.Number, behind)
		default:
			continue
		}
		found = append(found, fault{Failure, e.Name, seen, "use a node that follows BSC's fast finality (tag " +
			"finalized)"})
	}
	return found
}

// usableFails finds the endpoints that answered one question with an error.
func usableFails(how Severity, failed func(Endpoint) error, seen, fix string) func(*Facts) []fault {
	return func(f *Facts) (found []fault) {
		for _, e := range f.usable() {
			if err := failed(e); err != nil {
				found = append(found, fault{how, e.Name, seen + ": " + err.Error(), fix})
			}
		}
		return found
	}
}

// withoutReceipts is a failure where no endpoint proves a block: a node could then hide a log.
func withoutReceipts(f *Facts) (found []fault) {
	how := Failure
	for _, e := range f.usable() {
		if e.ReceiptsError == nil && !e.Unproven {
			how = Warning
		}
	}
	for _, e := range f.usable() {
		switch {
		case e.ReceiptsError != nil:
			found = append(found, fault{how, e.Name, "it does not give a block's receipts: " + e.ReceiptsError.Error(),
				"use an endpoint that serves eth_getBlockReceipts"})
		case e.Unproven:
			found = append(found, fault{how, e.Name, "its receipts do not hash to the root that the block names",
				"do not use it: it leaves out or makes up logs"})
		}
	}
	return found
}

func narrowRange(f *Facts) (found []fault) {
	for _, e := range f.usable() {
		if e.LogsLimit > 0 && e.LogsLimit < min(leastLogs, f.Settings.LogsRange) {
			found = append(found, fault{Warning, e.Name,
				fmt.Sprintf("it gives logs of %d blocks at once at most", e.LogsLimit),
				"reading the exchange's history takes days with it; use another plan or provider for the first start"})
		}
	}
	return found
}

func withoutHistory(f *Facts) (found []fault) {
	how, usable := Failure, f.usable()
	for _, e := range usable {
		if e.HistoryError == nil {
			how = Warning
		}
	}
	for _, e := range usable {
		if e.HistoryError != nil {
			found = append(found, fault{how, e.Name, fmt.Sprintf("it does not give the logs of block %d, where the "+
				"record begins: %v", f.Settings.StartBlock, e.HistoryError),
				"at least one endpoint must have the logs from scanner.start_block on"})
		}
	}
	return found
}

// withoutArchive is about words that are read at the first block; once the record has begun nobody needs them.
func withoutArchive(f *Facts) []fault {
	usable := f.usable()
	if f.State != nil && f.State.Started || f.Settings.StartBlock == 0 || len(usable) == 0 ||
		slices.ContainsFunc(usable, func(e Endpoint) bool { return e.OldState }) {
		return nil
	}
	return []fault{{Warning, "", fmt.Sprintf("no endpoint has the state of block %d, where the record begins",
		f.Settings.StartBlock), "words of scanner.param without `each` are read at that block: name an archive " +
		"endpoint for the first start"}}
}

// disagreeing names those that differ from the hash most endpoints have for a settled block; where no hash has more
// than another, all of them.
func disagreeing(f *Facts) (found []fault) {
	votes := map[chain.Hash]int{}
	var asked []Endpoint
	for _, e := range f.usable() {
		if e.SettledNumber > 0 {
			asked = append(asked, e)
			votes[e.Settled]++
		}
	}
	if len(votes) < 2 {
		return nil
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
			found = append(found, fault{Failure, e.Name,
				fmt.Sprintf("it has %s for the settled block %d, and others have another", e.Settled, e.SettledNumber),
				"compare with a block explorer, and remove the one that is wrong"})
		}
	}
	return found
}

func oneHost(f *Facts) []fault {
	if f.Development || f.Hosts != 1 {
		return nil
	}
	return []fault{{Warning, "", "all endpoints are at one host: what is final, spent or refused rests on its " +
		"word alone",
		"name an endpoint of another provider in chain.urls"}}
}

func privateFails(f *Facts) (found []fault) {
	for _, e := range f.Endpoints {
		if e.Private && e.Down != nil {
			found = append(found, fault{Warning, e.Name, "no answer: " + e.Down.Error(),
				"transactions that must not be seen before they are mined need it (chain.private_urls)"})
		}
	}
	return found
}

// span is the time from one moment of the chain to a later one, both in Unix milliseconds; 0 where it is none.
func span(fromMs, toMs uint64) time.Duration {
	return time.Duration(toMs-min(fromMs, toMs)) * time.Millisecond
}

// leastPerSecond is what a scanner, a planner's words and a sender ask of an endpoint in a busy second.
const leastPerSecond = 25

// fewCredits finds endpoints that refuse requests for their number while they are examined.
func fewCredits(f *Facts) (found []fault) {
	for _, e := range f.Endpoints {
		if e.usable() && e.PerSecond > 0 && e.PerSecond < leastPerSecond {
			found = append(found, fault{Warning, e.Name, fmt.Sprintf("it takes about %.0f requests a second and "+
				"refuses the others; a busy keeper asks %d", e.PerSecond, leastPerSecond),
				"raise the plan at the provider, or add an endpoint"})
		}
	}
	return found
}

// throttledShare is the part of all requests, in percent, that may be refused for their number.
const throttledShare = 1

// throttled finds that the running processes are short of what endpoints give.
func throttled(f *Facts) []fault {
	if f.State == nil {
		return nil
	}
	seen := f.State.Seen
	if seen.Requests < 1000 || seen.Throttled*100 <= seen.Requests*throttledShare {
		return nil
	}
	return []fault{{Warning, "", fmt.Sprintf("endpoints have refused %.0f of %.0f requests for their number since the "+
		"processes started: credits or the limit a second are used up", seen.Throttled, seen.Requests),
		"the processes' logs name the endpoint: raise its plan, or add one"}}
}
