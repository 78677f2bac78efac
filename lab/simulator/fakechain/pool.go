package fakechain

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
)

// Limits of what nodes take.
const (
	maxTxGas  = 16_777_216
	maxAhead  = 64 // how far a nonce may be ahead of the account's
	bumpLeast = 10 // percent by which a replacement has to pay more
)

// pool is what waits to be mined.
type pool struct {
	waiting map[chain.Address]map[uint64]*transaction
	late    []delivery
}

// delivery is a transaction that an endpoint sits on.
type delivery struct {
	atMs uint64
	tx   *transaction
}

func newPool() *pool { return &pool{waiting: map[chain.Address]map[uint64]*transaction{}} }

// nodeError is a node's own answer.
type nodeError string

// Error implements error.
func (e nodeError) Error() string { return string(e) }

// ErrorCode is that of JSON-RPC: invalid input.
func (e nodeError) ErrorCode() int { return -32000 }

func refusef(format string, args ...any) error { return nodeError(fmt.Sprintf(format, args...)) }

// check reports why a node refuses a transaction, in the words of BSC's nodes and in the order of their checks, with
// the account as the node sees it.
func (p *pool) check(tx *transaction, a account, cfg Config) error {
	cost := chain.U64(tx.Gas).Mul(chain.U64(tx.Cap))
	same := p.waiting[tx.from][tx.Nonce]
	switch {
	case p.knows(tx):
		return nodeError("already known")
	case tx.Gas > maxTxGas:
		return refusef("transaction gas limit too high (cap: %d, tx: %d)", maxTxGas, tx.Gas)
	case tx.Gas > cfg.GasLimit:
		return nodeError("exceeds block gas limit")
	case tx.Gas < leastGas(tx):
		return refusef("intrinsic gas too low: gas %d, minimum needed %d", tx.Gas, leastGas(tx))
	case tx.Tip < cfg.Floor:
		return refusef("transaction underpriced: gas tip cap %d, minimum needed %d", tx.Tip, cfg.Floor)
	case tx.Nonce < a.nonce:
		return refusef("nonce too low: next nonce %d, tx nonce %d", a.nonce, tx.Nonce)
	case tx.Nonce >= a.nonce+maxAhead:
		return refusef("account limit exceeded: pooled %d txs", maxAhead)
	case a.balance.Less(cost):
		return refusef("insufficient funds for gas * price + value: balance %s, tx cost %s, overshot %s", a.balance,
			cost, cost.Sub(a.balance))
	case same != nil && !dearer(tx, same):
		return nodeError("replacement transaction underpriced")
	}
	return nil
}

func (p *pool) knows(tx *transaction) bool {
	same := p.waiting[tx.from][tx.Nonce]
	return same != nil && same.hash == tx.hash ||
		slices.ContainsFunc(p.late, func(d delivery) bool { return d.tx.hash == tx.hash })
}

// leastGas is what a call costs before it begins.
func leastGas(tx *transaction) uint64 { return 21_000 + 16*uint64(len(tx.Data)) }

// dearer reports whether a transaction may take another one's place.
func dearer(tx, than *transaction) bool {
	least := func(price uint64) uint64 { return price + price*bumpLeast/100 }
	return tx.Tip > than.Tip && tx.Cap > than.Cap && tx.Tip >= least(than.Tip) && tx.Cap >= least(than.Cap)
}

// put takes a transaction, in place of another one at its nonce.
func (p *pool) put(tx *transaction) {
	if p.waiting[tx.from] == nil {
		p.waiting[tx.from] = map[uint64]*transaction{}
	}
	p.waiting[tx.from][tx.Nonce] = tx
}

// mined drops what can no longer be mined, now that an account's next nonce is this.
func (p *pool) mined(from chain.Address, next uint64) {
	maps.DeleteFunc(p.waiting[from], func(n uint64, _ *transaction) bool { return n < next })
}

// arrived returns what the endpoints have sat on until now.
func (p *pool) arrived(nowMs uint64) (due []*transaction) {
	p.late = slices.DeleteFunc(p.late, func(d delivery) bool {
		if d.atMs <= nowMs {
			due = append(due, d.tx)
		}
		return d.atMs <= nowMs
	})
	slices.SortFunc(due, byHash) // not in the order in which they were sent within a moment
	return due
}

// pending is an account's next nonce with what waits.
func (p *pool) pending(from chain.Address, next uint64) uint64 {
	for p.waiting[from][next] != nil {
		next++
	}
	return next
}

// best returns the best paid of the transactions that are next for their accounts and that a miner wants; nil if there
// is none.
func (p *pool) best(next func(chain.Address) uint64, wants func(*transaction) bool) (best *transaction) {
	for from, waiting := range p.waiting {
		if tx := waiting[next(from)]; tx != nil && wants(tx) && (best == nil || before(tx, best) < 0) {
			best = tx
		}
	}
	return best
}

// before orders by price, then by arrival, then by lot.
func before(a, b *transaction) int {
	return cmp.Or(cmp.Compare(b.price(), a.price()), cmp.Compare(a.ready, b.ready), byHash(a, b))
}

func byHash(a, b *transaction) int { return bytes.Compare(a.hash[:], b.hash[:]) }
