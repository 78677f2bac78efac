package liars

import (
	"encoding/json"
	"math/big"
)

// lie is one kind of wrong answer.
type lie struct {
	name string
	// change returns the wrong answer in place of an honest one; false where the lie says nothing about the request. It
	// runs under the endpoint's lock.
	change func(*endpoint, call, answer) (answer, bool)
	// reports changes the reports of a price source, in which case change is nil.
	reports func(*priceSource, []report) []report
	// reorg: meanwhile the chain replaces blocks that are not final.
	reorg bool
	// rare: what it changes may never be asked or answered, so that the row shows just that.
	rare bool
	// decisive: the answer contradicts itself, the chain or the other two, so that it has to be named within a minute.
	decisive bool
	// short: the row is in the short form; pair: so is the one with two endpoints.
	short, pair bool
}

// lies are every wrong answer there is a row for.
var lies = []lie{
	{name: "none"},
	{name: "head ahead", change: heads(ahead), decisive: true, short: true},
	{name: "head behind", change: heads(behind), decisive: true},
	{name: "head made up", change: headMadeUp, decisive: true, reorg: true},
	{name: "header altered", change: headerAltered, decisive: true},
	{name: "body: other hashes", change: bodies(otherHashes), decisive: true},
	{name: "body: other senders", change: bodies(otherSenders), decisive: true},
	{name: "body: one left out", change: bodies(oneLeftOut), decisive: true},
	{name: "finalized ahead", change: finalizedAhead, reorg: true, short: true, pair: true},
	{name: "receipts: one log dropped", change: onReceipts, decisive: true, short: true},
	{name: "receipt missing", change: receipt(missing)},
	{name: "receipt of a failure", change: receipt(failed), short: true},
	{name: "receipt made up", change: either(receiptMadeUp, counted)},
	{name: "eth_call reverts", change: callReverts, short: true, pair: true},
	{name: "eth_call succeeds", change: callSucceeds, rare: true}, // few calls revert
	{name: "gas price x 100", change: gasPrice(times(100)), short: true},
	{name: "gas price 1 wei", change: gasPrice(func(*big.Int) *big.Int { return big.NewInt(1) })},
	{name: "nonce ahead", change: nonce(1000)},
	{name: "nonce behind", change: nonce(-3)},
	{name: "balance of nothing", change: balance(new(big.Int)), rare: true},
	{name: "balance of plenty", change: balance(new(big.Int).Lsh(big.NewInt(1), 100)), rare: true},
	{name: "broadcast: no funds", change: broadcast("insufficient funds for gas * price + value")},
	{name: "broadcast: nonce too low", change: broadcast("nonce too low")},
	{name: "price report ahead", reports: reportsAhead, decisive: true, short: true},
	{name: "price report behind", reports: reportsBehind},
	{name: "price report absurd", reports: reportsAbsurd, decisive: true, short: true},
}

// either applies the first lie that is about a request.
func either(changes ...func(*endpoint, call, answer) (answer, bool)) func(*endpoint, call, answer) (answer, bool) {
	return func(e *endpoint, c call, a answer) (answer, bool) {
		for _, change := range changes {
			if said, is := change(e, c, a); is {
				return said, true
			}
		}
		return a, false
	}
}

// text is a parameter that is a string, empty otherwise.
func (c call) text(i int) (s string) {
	if i < len(c.Params) {
		_ = json.Unmarshal(c.Params[i], &s) // no string is empty
	}
	return s
}
