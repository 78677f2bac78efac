package fakechain

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/perp"
)

// Faults are the faults of an endpoint. The zero Faults is nothing.
type Faults struct {
	Down    bool          // it answers nothing, and whether a request arrived is unknown: it did not
	Lag     time.Duration // all that it shows is so old
	Swallow bool          // it takes transactions and forwards none
	Late    time.Duration // it passes transactions on so much later
}

// Endpoint is how one keeper sees the chain and reaches it. It answers all that the sender asks of a node; heads are
// asked for.
type Endpoint struct {
	chain  *Chain
	faults Faults
	downMs uint64 // since when it has been down
}

// Endpoint returns another way to the chain.
func (c *Chain) Endpoint() *Endpoint { return &Endpoint{chain: c} }

// SetFaults sets the faults from now on.
func (e *Endpoint) SetFaults(f Faults) {
	e.chain.mu.Lock()
	defer e.chain.mu.Unlock()
	if f.Down && !e.faults.Down {
		e.downMs = e.chain.nowMs()
	}
	e.faults = f
}

var errAway = errors.New("dial tcp: connection refused")

// revertError is a node's word that a call was reverted.
type revertError struct{ data []byte }

// Error implements error.
func (e *revertError) Error() string { return "execution reverted" }

// ErrorCode is the one nodes give reverts.
func (e *revertError) ErrorCode() int { return 3 }

// ErrorData is the error data, as nodes write it.
func (e *revertError) ErrorData() any { return "0x" + hex.EncodeToString(e.data) }

// show asks something of the chain as the endpoint sees it.
func show[T any](e *Endpoint, what string, ask func(c *Chain, s headAt) (T, error)) (answer T, err error) {
	e.chain.mu.Lock()
	defer e.chain.mu.Unlock()
	if e.faults.Down {
		err = errAway
	} else {
		answer, err = ask(e.chain, e.chain.seenAt(e.chain.nowMs(), e.faults.Lag))
	}
	if err != nil {
		return answer, fmt.Errorf("%s: %w", what, err)
	}
	return answer, nil
}

// seenAt is what was to be seen so long before a time.
func (c *Chain) seenAt(ms uint64, before time.Duration) headAt {
	then := ms - min(ms, uint64(before.Milliseconds()))
	if newest := c.sights[len(c.sights)-1]; newest.atMs <= then {
		return newest
	}
	n, _ := slices.BinarySearchFunc(c.sights, then+1, func(s headAt, ms uint64) int { return cmp.Compare(s.atMs, ms) })
	return c.sights[max(n, 1)-1]
}

// Heads gives none: whoever drives a simulation asks for the head.
func (e *Endpoint) Heads(context.Context) <-chan chain.BlockRef { return nil }

// Head returns the newest block.
func (e *Endpoint) Head(context.Context) (chain.BlockRef, error) {
	return show(e, "asking for the head", func(_ *Chain, s headAt) (chain.BlockRef, error) { return s.tip.ref, nil })
}

// Finalized returns the newest final block.
func (e *Endpoint) Finalized(context.Context) (chain.BlockRef, error) {
	return show(e, "asking for the finalized block",
		func(_ *Chain, s headAt) (chain.BlockRef, error) { return s.final.ref, nil })
}

// SettledNonce returns an account's next nonce in the newest final block.
func (e *Endpoint) SettledNonce(ctx context.Context, address chain.Address, _ uint64) (uint64, error) {
	return e.NonceAt(ctx, address, evm.Finalized)
}

// MinedNonce returns an account's next nonce in the newest block, as the only endpoint there is has it.
func (e *Endpoint) MinedNonce(ctx context.Context, address chain.Address) (evm.MinedNonce, error) {
	n, err := e.NonceAt(ctx, address, evm.Latest)
	return evm.MinedNonce{Agreed: n, Sure: true, Newest: n}, err
}

// SettledReceipt returns the block that holds a transaction, and whether it succeeded there.
func (e *Endpoint) SettledReceipt(ctx context.Context, tx chain.Hash) (chain.Hash, bool, error) {
	r, err := e.Receipt(ctx, tx)
	if err != nil || r == nil {
		return chain.Hash{}, false, err
	}
	return r.BlockHash, r.OK, nil
}

// SettledHash returns the hash of the block of a number.
func (e *Endpoint) SettledHash(_ context.Context, number uint64) (chain.Hash, error) {
	return show(e, "asking for a block's hash", func(_ *Chain, s headAt) (chain.Hash, error) {
		for b := s.tip; b != nil; b = b.parent {
			if b.ref.Number == number {
				return b.ref.Hash, nil
			}
		}
		return chain.Hash{}, fmt.Errorf("block %d is not known", number)
	})
}

// NonceAt returns an account's next nonce.
func (e *Endpoint) NonceAt(_ context.Context, address chain.Address, tag evm.Tag) (uint64, error) {
	return show(e, "asking for a nonce", func(c *Chain, s headAt) (uint64, error) {
		switch tag {
		case evm.Finalized:
			return c.account(s.final, address).nonce, nil
		case evm.Pending:
			return c.pool.pending(address, c.account(s.tip, address).nonce), nil
		default:
			return c.account(s.tip, address).nonce, nil
		}
	})
}

// Balance returns an account's balance in wei.
func (e *Endpoint) Balance(_ context.Context, address chain.Address) (chain.Uint, error) {
	return show(e, "asking for a balance",
		func(c *Chain, s headAt) (chain.Uint, error) { return c.account(s.tip, address).balance, nil })
}

// Pays says that this chain keeps no room for payments.
func (e *Endpoint) Pays(_ context.Context, _ chain.Address) (bool, error) {
	return show(e, "asking for the payment lane", func(*Chain, headAt) (bool, error) { return false, nil })
}

// Receipt returns a mined transaction, or nil.
func (e *Endpoint) Receipt(_ context.Context, hash chain.Hash) (*evm.Receipt, error) {
	return show(e, "asking for a receipt", func(c *Chain, s headAt) (*evm.Receipt, error) {
		if i := c.inclusion(s.tip, hash); i != nil {
			return i.receipt(), nil
		}
		return nil, nil // an unmined transaction is no error, as with evm.Client
	})
}

// Simulate executes a call on the newest state and forgets it.
func (e *Endpoint) Simulate(_ context.Context, from, to chain.Address, data []byte, gas uint64,
	_ chain.Uint) (evm.Source, error) {
	_, err := show(e, "simulating a transaction", func(c *Chain, s headAt) (struct{}, error) {
		stamp := perp.Stamp{Block: s.tip.ref.Number, TimeMs: s.tip.ref.TimeMs}
		effect := c.venue.Execute(&draft{c, s.tip, nil}, venue.Call{From: from, To: to, Data: data, Gas: gas}, stamp,
			true)
		if !effect.OK {
			return struct{}{}, &revertError{effect.Revert}
		}
		return struct{}{}, nil
	})
	return "", err
}

// draft is a state over a block that is thrown away.
type draft struct {
	chain *Chain
	at    *block
	put   map[perp.RowKey]perp.Row
}

// Get implements perp.State.
func (d *draft) Get(key perp.RowKey) perp.Row {
	if row, put := d.put[key]; put {
		return row
	}
	return d.chain.row(d.at, key)
}

// Put implements perp.State.
func (d *draft) Put(row perp.Row) {
	if d.put == nil {
		d.put = map[perp.RowKey]perp.Row{}
	}
	d.put[row.RowKey()] = row
}

// SendRaw gives a transaction to the endpoint.
func (e *Endpoint) SendRaw(_ context.Context, raw []byte) error {
	_, err := show(e, "sending a transaction", func(c *Chain, s headAt) (struct{}, error) {
		tx, err := read(raw)
		if err != nil {
			return struct{}{}, nodeError(err.Error())
		}
		if err := c.pool.check(tx, c.account(s.tip, tx.from), c.cfg); err != nil {
			return struct{}{}, err
		}
		tx.ready = c.nowMs() + uint64(c.gossip(tx).Milliseconds())
		switch f := e.faults; {
		case f.Swallow:
		case f.Late > 0:
			c.pool.late = append(c.pool.late, delivery{c.nowMs() + uint64(f.Late.Milliseconds()), tx})
		default:
			c.pool.put(tx)
		}
		return struct{}{}, nil
	})
	return err
}

// gossip is how long a transaction takes to the miners.
func (c *Chain) gossip(tx *transaction) time.Duration {
	if c.cfg.Jitter <= 0 {
		return c.cfg.Gossip
	}
	lot := fnv.New64a()
	_, _ = lot.Write(tx.hash[:]) // a hash does not fail
	return c.cfg.Gossip + time.Duration((lot.Sum64()^c.cfg.Seed)%uint64(c.cfg.Jitter))
}

var errNoBuilder = errors.New("no private endpoint is configured")

// SendPrivate refuses: there are no builders.
func (e *Endpoint) SendPrivate(context.Context, []byte, uint64) error { return errNoBuilder }

// GasPrice returns what the node suggests, in wei per gas.
func (e *Endpoint) GasPrice(context.Context) (uint64, error) {
	return show(e, "asking for the gas price",
		func(c *Chain, _ headAt) (uint64, error) { return c.cfg.Floor, nil })
}

// Tips returns what the newest blocks were paid, as evm.Client does.
func (e *Endpoint) Tips(_ context.Context, blocks int, shares []uint64) ([][]uint64, error) {
	return show(e, "asking what blocks were paid", func(_ *Chain, s headAt) (tips [][]uint64, _ error) {
		for at := s.tip; at != nil && blocks > 0; at, blocks = at.parent, blocks-1 {
			if paid := at.tips(shares); paid != nil {
				tips = append(tips, paid)
			}
		}
		slices.Reverse(tips)
		return tips, nil
	})
}

// tips is what each share of a block's gas was paid at most; nil for an empty block.
func (b *block) tips(shares []uint64) (paid []uint64) {
	txs := slices.SortedFunc(slices.Values(b.txs),
		func(x, y *included) int { return cmp.Compare(x.price(), y.price()) })
	var all uint64
	for _, i := range txs {
		all += i.tx.GasUsed
	}
	if all == 0 {
		return nil
	}
	for _, share := range shares {
		var most, sum uint64
		for n := 0; n < len(txs) && (n == 0 || sum*100 < all*share); n++ {
			most, sum = txs[n].price(), sum+txs[n].tx.GasUsed
		}
		paid = append(paid, most)
	}
	return paid
}

// Endpoints names none: there is no second word to be had about anything.
func (e *Endpoint) Endpoints() []evm.EndpointStatus { return nil }

// Excluding asks nobody.
func (e *Endpoint) Excluding(...evm.Source) evm.Reader { return evm.Reader{} }
