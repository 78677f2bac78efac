package scanner

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// ownSearch finds the transactions of the signers in a range without reading every block of it (adr 0023).
type ownSearch struct {
	*collector

	from, to  uint64
	used      used
	everyBody bool // nonces do not tell: every block is to be read
}

// survey begins anew to search for transactions of the signers, between a block and a later one: a signer that has sent
// nothing in between, or nothing at all, is asked for no more. Where that cannot be known each range asks for itself.
func (c *collector) survey(ctx context.Context, before, last uint64) {
	c.settled = newNonceHistory()
	for _, block := range []uint64{last, before} {
		var asked []evm.AccountAt
		for _, signer := range c.own.Signers {
			asked = append(asked, evm.AccountAt{Account: signer, Block: block})
		}
		if _, err := settledNonces(ctx, c.nonces, c.settled, asked); err != nil {
			c.log.Debug().Err(err).Uint64("block", block).Msg("the signers' nonces are not known yet")
		}
	}
}

// begin reads the headers of the range and, beside them, which nonces were used there.
func (o *ownSearch) begin(ctx context.Context) (headers []evm.Header, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		headers, err = o.chain.Blocks(ctx, o.from, o.to)
		return err
	})
	if len(o.own.Signers) > 0 {
		group.Go(func() (err error) {
			o.used, err = usedBetween(ctx, o.nonces, o.settled, o.own.Signers, o.from, o.to)
			return o.fallBack(ctx, err)
		})
	}
	return headers, group.Wait()
}

// complete reads the blocks that hold what is lacking of the signers' transactions.
func (o *ownSearch) complete(ctx context.Context, headers []evm.Header, read []*found) error {
	if o.everyBody || len(o.own.Signers) == 0 {
		return nil
	}
	lacking, err := o.used.check(transactionsIn(read), o.own.Signers, nil)
	if len(lacking) > 0 && err == nil {
		err = o.readLacking(ctx, headers, read, lacking)
	}
	if err := o.fallBack(ctx, err); err != nil || !o.everyBody {
		return err
	}
	return o.readThose(ctx, headers, read, func(evm.Header) bool { return true })
}

// readLacking searches for the blocks in which signers have used nonces, and reads them.
func (o *ownSearch) readLacking(ctx context.Context, headers []evm.Header, read []*found,
	lacking []chain.Address) error {
	in, err := searchSteps(ctx, o.nonces, o.settled, lacking, o.used, o.from, o.to)
	if err != nil {
		return err
	}
	if err := o.readThose(ctx, headers, read, func(h evm.Header) bool {
		return slices.ContainsFunc(lacking, func(a chain.Address) bool { return in[a][h.Number] > 0 })
	}); err != nil {
		return &readError{err}
	}
	lacking, err = o.used.check(transactionsIn(read), o.own.Signers, in)
	for _, account := range lacking {
		for block, count := range in[account] {
			if err := o.readAgain(ctx, account, headers[block-o.from], count, read); err != nil {
				return &readError{err}
			}
		}
	}
	return err
}

// readAgain reads a block from another endpoint where it shows fewer transactions of a signer than it has used nonces
// there. What both leave out was no transaction of its own: a delegation that it had signed (EIP-7702) takes a nonce
// too, in whoever's transaction.
func (o *ownSearch) readAgain(ctx context.Context, account chain.Address, header evm.Header, count uint64,
	read []*found) error {
	at := &read[header.Number-o.from]
	if sentBy(account, *at) >= count {
		return nil
	}
	block, err := o.chain.Elsewhere(o.chain.ServedBy(header.Hash, evm.PartHeader)).BlockWithReceipts(ctx, header.Hash)
	if evm.NoEndpoint(err) {
		return nil
	}
	if err != nil {
		return err
	}
	again, err := o.read(ctx, block, true)
	if err != nil {
		return err
	}
	if sentBy(account, &again) > sentBy(account, *at) {
		*at = &again
		return nil
	}
	o.log.Info().Stringer("account", account).Uint64("block", header.Number).
		Msg("a signer's nonce rose without a transaction of its own: it has signed a delegation")
	return nil
}

func sentBy(account chain.Address, f *found) (count uint64) {
	for _, tx := range f.txs {
		if tx.From == account {
			count++
		}
	}
	return count
}

// readError is an error of reading blocks, which reading more of them does not mend.
type readError struct{ cause error }

func (e *readError) Error() string { return e.cause.Error() }

func (e *readError) Unwrap() error { return e.cause }

// fallBack has every block of the range read where nonces do not show which are needed, and logs that, once a backfill.
func (o *ownSearch) fallBack(ctx context.Context, err error) error {
	if _, reading := errors.AsType[*readError](err); err == nil || reading || ctx.Err() != nil || evm.WrongChain(err) {
		return err
	}
	o.everyBody = true
	o.metrics.bodyRanges.Inc()
	if o.settled.complain() {
		o.log.Warn().Err(err).Msg("the signers' transactions cannot be found by their nonces, so that every block of " +
			"history is read, which takes some ten times as long (name endpoints of two hosts in chain.urls that " +
			"keep old states: archive nodes)")
	}
	return nil
}

func transactionsIn(read []*found) (txs []chain.Tx) {
	for _, f := range read {
		if f != nil {
			txs = append(txs, f.txs...)
		}
	}
	return txs
}
