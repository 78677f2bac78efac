package scanner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// nonces returns how many transactions an account had sent at old blocks; an evm.Client.
type nonces interface {
	OldNonces(ctx context.Context, asked []evm.AccountAt) ([]uint64, error)
	SettledNonces(ctx context.Context, asked []evm.AccountAt) ([]uint64, error)
}

// errNonces means that nonces contradict each other, or the transactions that were found.
var errNonces = errors.New("nonces contradict each other")

// used are the nonces that accounts have used in a range, from first to before next. Accounts that used none are left
// out.
type used map[chain.Address]struct{ first, next uint64 }

// steps are the blocks in which accounts have used nonces, and how many.
type steps map[chain.Address]map[uint64]uint64

// usedBetween returns the nonces that accounts have used in a range, as two hosts have it.
func usedBetween(ctx context.Context, of nonces, settled *nonceHistory, accounts []chain.Address,
	from, to uint64) (used, error) {
	var ends []evm.AccountAt
	for _, account := range accounts {
		ends = append(ends, evm.AccountAt{Account: account, Block: from - 1},
			evm.AccountAt{Account: account, Block: to})
	}
	at, err := settledNonces(ctx, of, settled, ends)
	if err != nil {
		return nil, err
	}
	out := used{}
	for i, account := range accounts {
		switch first, next := at[2*i], at[2*i+1]; {
		case next < first:
			return nil, fmt.Errorf("%w: %s falls from %d to %d", errNonces, account, first, next)
		case next > first:
			out[account] = struct{ first, next uint64 }{first, next}
		}
	}
	return out, nil
}

// searchSteps finds the blocks of a range in which accounts have used their nonces. Whose nonce did not change between
// two blocks has sent nothing there. One endpoint is asked, by halves of halves; what that comes to is asked of two
// hosts again. Since nonces never fall, that leaves no other block.
func searchSteps(ctx context.Context, of nonces, settled *nonceHistory, accounts []chain.Address, all used,
	from, to uint64) (steps, error) {
	var open []gap
	for _, account := range accounts {
		open = append(open, gap{account, noncePoint{from - 1, all[account].first}, noncePoint{to, all[account].next}})
	}
	found, err := narrow(ctx, of, open)
	if err != nil {
		return nil, err
	}
	if err := confirm(ctx, of, settled, found); err != nil {
		return nil, err
	}
	out := steps{}
	for _, g := range found {
		if out[g.account] == nil {
			out[g.account] = map[uint64]uint64{}
		}
		out[g.account][g.above.block] = g.above.nonce - g.below.nonce
	}
	return out, nil
}

// gap are two blocks and the nonces of an account there.
type gap struct {
	account      chain.Address
	below, above noncePoint
}

func (g gap) rises() bool { return g.below.nonce < g.above.nonce }

// pointsInside is how many blocks within a gap are asked for at once: more take fewer trips and more questions.
const pointsInside = 3

// inside returns blocks that part a gap.
func (g gap) inside() (blocks []uint64) {
	width := g.above.block - g.below.block
	for i := uint64(1); i <= pointsInside; i++ {
		if block := g.below.block + width*i/(pointsInside+1); block > g.below.block &&
			(len(blocks) == 0 || block > blocks[len(blocks)-1]) {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// narrow returns the single blocks in which nonces rise, as one endpoint has it, side by side for all gaps.
func narrow(ctx context.Context, of nonces, open []gap) (single []gap, err error) {
	for len(open) > 0 {
		var asked []evm.AccountAt
		for _, g := range open {
			for _, block := range g.inside() {
				asked = append(asked, evm.AccountAt{Account: g.account, Block: block})
			}
		}
		var counts []uint64
		if len(asked) > 0 {
			if counts, err = of.OldNonces(ctx, asked); err != nil {
				return nil, err
			}
		}
		var next []gap
		for _, g := range open {
			n := len(g.inside())
			parts, err := g.split(asked[:n], counts[:n])
			if err != nil {
				return nil, err
			}
			asked, counts = asked[n:], counts[n:]
			for _, part := range parts {
				if part.above.block-part.below.block == 1 {
					single = append(single, part)
				} else {
					next = append(next, part)
				}
			}
		}
		open = next
	}
	return single, nil
}

// split parts a gap at blocks of which the nonces are known, and returns those in which the nonce rises.
func (g gap) split(at []evm.AccountAt, nonces []uint64) (parts []gap, err error) {
	below := g.below
	for i := range len(at) + 1 {
		above := g.above
		if i < len(at) {
			above = noncePoint{at[i].Block, nonces[i]}
		}
		part := gap{g.account, below, above}
		if above.nonce < below.nonce {
			return nil, fmt.Errorf("%w: %s has %d at block %d and %d at block %d", errNonces, g.account, below.nonce,
				below.block, above.nonce, above.block)
		}
		if part.rises() {
			parts = append(parts, part)
		}
		below = above
	}
	return parts, nil
}

// confirm asks two hosts for the nonces on both sides of each step. Where they are what one endpoint has answered there
// is no step between these blocks.
func confirm(ctx context.Context, of nonces, settled *nonceHistory, single []gap) error {
	var asked []evm.AccountAt
	var want []uint64
	for _, s := range single {
		asked = append(asked, evm.AccountAt{Account: s.account, Block: s.below.block},
			evm.AccountAt{Account: s.account, Block: s.above.block})
		want = append(want, s.below.nonce, s.above.nonce)
	}
	counts, err := settledNonces(ctx, of, settled, asked)
	if err != nil {
		return err
	}
	for i := range counts {
		if counts[i] != want[i] {
			return fmt.Errorf("%w: one endpoint has %d for %s at block %d, two hosts have %d", errNonces, want[i],
				asked[i].Account, asked[i].Block, counts[i])
		}
	}
	return nil
}

// settledNonces returns nonces as two hosts have them, asked for together where they are not known.
func settledNonces(ctx context.Context, of nonces, settled *nonceHistory, wanted []evm.AccountAt) ([]uint64, error) {
	unknown := slices.DeleteFunc(slices.Clone(wanted), func(a evm.AccountAt) bool {
		_, known := settled.at(a)
		return known
	})
	counts, err := of.SettledNonces(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for i, a := range unknown {
		if err := settled.note(a, counts[i]); err != nil {
			return nil, err
		}
	}
	at := make([]uint64, len(wanted))
	for i, a := range wanted {
		at[i], _ = settled.at(a)
	}
	return at, nil
}

// check compares the transactions that were found in a range with the nonces that were used there. It returns the
// accounts of which some are lacking, and fails where there is one that cannot be.
func (u used) check(txs []chain.Tx, signers []chain.Address, in steps) (lacking []chain.Address, err error) {
	found := map[chain.Address]map[uint64]bool{}
	for _, tx := range txs {
		if !slices.Contains(signers, tx.From) {
			continue
		}
		nonces, searched := u[tx.From], in[tx.From]
		if tx.Nonce < nonces.first || tx.Nonce >= nonces.next || found[tx.From][tx.Nonce] ||
			searched != nil && searched[tx.Block] == 0 {
			return nil, fmt.Errorf("%w: %s has sent a transaction with nonce %d in block %d, and has used %d to "+
				"before %d, elsewhere", errNonces, tx.From, tx.Nonce, tx.Block, nonces.first, nonces.next)
		}
		if found[tx.From] == nil {
			found[tx.From] = map[uint64]bool{}
		}
		found[tx.From][tx.Nonce] = true
	}
	for account, nonces := range u {
		if uint64(len(found[account])) < nonces.next-nonces.first {
			lacking = append(lacking, account)
		}
	}
	return lacking, nil
}
