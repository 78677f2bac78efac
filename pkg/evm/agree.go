package evm

import (
	"context"
	"fmt"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm/agreement"
)

// SettledHash returns the hash of the block of a number at or below a final one, as two hosts have it; see Finalized.
// Undecided(err) while they do not agree.
func (c *Client) SettledHash(ctx context.Context, number uint64) (chain.Hash, error) {
	hash, err := same(ctx, c, ForFinality,
		func(ctx context.Context, one Reader) (chain.Hash, error) { return one.HashAt(ctx, number) })
	if err != nil {
		return hash, fmt.Errorf("asking for the hash of block %d: %w", number, err)
	}
	return hash, nil
}

// SettledNonce returns how many transactions an account had sent at a final block, as two hosts have it; see Finalized.
// Undecided(err) while they do not agree.
func (c *Client) SettledNonce(ctx context.Context, account chain.Address, final uint64) (uint64, error) {
	nonce, err := same(ctx, c, ForNonces,
		func(ctx context.Context, one Reader) (uint64, error) { return one.nonceAtBlock(ctx, account, final) })
	if err != nil {
		return 0, fmt.Errorf("asking for the nonce of %s at block %d: %w", account, final, err)
	}
	return nonce, nil
}

// MinedNonce is how many transactions of an account are in mined blocks.
type MinedNonce struct {
	// Agreed is how many two hosts have, where Sure. It goes down with a reorg.
	Agreed uint64
	Sure   bool
	// Newest is how many the one that has most has: a hint.
	Newest uint64
}

// MinedNonce asks several hosts at once how many transactions of an account are in blocks up to the newest they have.
// Where too few answer it is not sure; it is an error when nobody does.
func (c *Client) MinedNonce(ctx context.Context, account chain.Address) (n MinedNonce, err error) {
	need := c.pool.required()
	answers, err := QuorumRead(ctx, c, ForNonces, need,
		func(ctx context.Context, one Reader) (uint64, error) { return one.NonceAt(ctx, account, Latest) })
	if len(answers) == 0 {
		return n, fmt.Errorf("asking how many transactions of %s are mined: %w", account, err)
	}
	for _, a := range answers {
		n.Newest = max(n.Newest, a.Value)
	}
	n.Agreed, _, n.Sure = agreement.AtLeast(answers, need)
	return n, nil
}

// inclusion is where a transaction was mined, and how.
type inclusion struct {
	block chain.Hash
	index uint64
	ok    bool
}

func (i inclusion) String() string {
	return fmt.Sprintf("it is number %d of block %s, success %t", i.index, i.block, i.ok)
}

// SettledReceipt returns the block that holds a transaction, and whether it succeeded there, as two hosts have it. An
// endpoint that does not know its receipt has not answered. Undecided(err) while two do not agree.
func (c *Client) SettledReceipt(ctx context.Context, tx chain.Hash) (block chain.Hash, ok bool, err error) {
	in, err := same(ctx, c, ForReceipts, func(ctx context.Context, one Reader) (inclusion, error) {
		claimed, _, err := one.claimed(ctx, tx)
		if err != nil {
			return inclusion{}, err
		}
		return inclusion{claimed.blockHash, uint64(claimed.index), claimed.status == 1}, nil
	})
	if err != nil {
		return chain.Hash{}, false, fmt.Errorf("asking for the receipt of %s: %w", tx, err)
	}
	return in.block, in.ok, nil
}

// same returns the answer that two hosts agree on, and excludes a host that differs while two others agree.
func same[T comparable](ctx context.Context, c *Client, purpose Purpose,
	ask func(context.Context, Reader) (T, error)) (value T, err error) {
	need := c.pool.required()
	answers, err := decide(ctx, c, purpose, ask, func(all []agreement.Answer[T]) bool {
		_, _, agreed := agreement.Same(all, need)
		return agreed
	})
	if err != nil {
		return value, err
	}
	value, by, agreed := agreement.Same(answers, need)
	if !agreed {
		undecided(c, purpose, answers, apart(answers))
		return value, &undecidedError{text: apart(answers)}
	}
	if len(by) > 1 {
		for _, from := range agreement.Dissent(answers, value) {
			c.contradicted(from, purpose, fmt.Sprintf("it says %v, others say %v", answerOf(answers, from), value),
				saidBy(answers)...)
		}
	}
	return value, nil
}

// apart lists which host gave which answer.
func apart[T any](answers []agreement.Answer[T]) string {
	lines := make([]string, len(answers))
	for i, a := range answers {
		lines[i] = fmt.Sprintf("%s says %v", a.From, a.Value)
	}
	return "no two hosts agree: " + strings.Join(lines, "; ")
}

func answerOf[T any](answers []agreement.Answer[T], from string) (value T) {
	for _, a := range answers {
		if a.From == from {
			value = a.Value
		}
	}
	return value
}
