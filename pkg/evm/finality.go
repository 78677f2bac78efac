package evm

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm/agreement"
)

// Finalized returns the highest block that two hosts call final, both of which know it by its hash; where all endpoints
// are at one host, what that says. One that lags behind makes it lower, and never wrong. It does not go back while two
// hosts are asked. Undecided(err) while there is no such block: whoever needs one waits.
//
// An endpoint that calls a branch final which does not hold the block is excluded for finality, and so is one whose
// final block turns out later not to be on the final branch.
func (c *Client) Finalized(ctx context.Context) (chain.BlockRef, error) {
	fresh, need := c.pool.cfg.PollInterval/2, c.pool.required()
	return c.pool.finality.newest(ctx, fresh, need, func() (chain.BlockRef, error) { return c.agreeOnFinal(ctx, need) })
}

func (c *Client) agreeOnFinal(ctx context.Context, need int) (chain.BlockRef, error) {
	var agreed agreement.Finality
	final := func(claims []agreement.Answer[chain.BlockRef]) bool {
		agreed = agreement.Final(claims, need, c.hashesAt(ctx))
		return len(agreed.By) > 0
	}
	claims, err := decide(ctx, c, ForFinality, func(ctx context.Context, one Reader) (chain.BlockRef,
		error) {
		return one.Finalized(ctx)
	}, final)
	if err != nil {
		return chain.BlockRef{}, fmt.Errorf("asking for the finalized block: %w", err)
	}
	if len(agreed.By) == 0 {
		undecided(c, ForFinality, claims, differ(claims))
		return chain.BlockRef{}, fmt.Errorf("asking for the finalized block: %w", &undecidedError{text: differ(claims)})
	}
	for _, from := range agreed.Contradict {
		c.contradicted(from, ForFinality, fmt.Sprintf("what it calls final does not hold block %d %s, which %s call "+
			"final", agreed.Block.Number, agreed.Block.Hash,
			strings.Join(agreed.By, ", ")), saidBy(claims)...)
	}
	if need > 1 {
		for from, claim := range c.disproved(ctx, agreed) {
			c.contradicted(from, ForFinality, fmt.Sprintf("it called block %d %s final, and the final chain has "+
				"another there", claim.Number, claim.Hash))
		}
	}
	c.pool.finality.note(claims, agreed.Block.Number)
	return agreed.Block, nil
}

// hashesAt asks single endpoints for hashes of the past.
func (c *Client) hashesAt(ctx context.Context) agreement.HashAt {
	return func(from string, number uint64) (chain.Hash, error) {
		if known, is := c.pool.finality.claimed(from, number); is {
			return known, nil
		}
		return c.only(c.pool.named(Source(from))).HashAt(ctx, number)
	}
}

// disproved returns what endpoints have called final before anybody else, and two hosts say now is not on the final
// branch.
func (c *Client) disproved(ctx context.Context, agreed agreement.Finality) map[string]chain.BlockRef {
	wrong := map[string]chain.BlockRef{}
	for from, claims := range c.pool.finality.due(agreed.Block.Number) {
		for _, claim := range claims {
			truth, err := agreed.Block.Hash, error(nil)
			if claim.Number < agreed.Block.Number {
				truth, err = c.SettledHash(ctx, claim.Number)
			}
			if err == nil && truth != claim.Hash {
				wrong[from] = claim
				break
			}
		}
	}
	return wrong
}

// contradicted excludes an endpoint whose answer differs from what was agreed on.
func (c *Client) contradicted(from string, purpose Purpose, detail string, said ...Said) {
	if e := c.pool.named(Source(from)); e != nil {
		e.distrust(purpose, ReasonContradicted, detail, said...)
	}
}

func (p *pool) named(name Source) *endpoint {
	for _, e := range p.public {
		if e.name == name {
			return e
		}
	}
	return nil
}

// differ lists which host names which block as final.
func differ(claims []agreement.Answer[chain.BlockRef]) string {
	var lines []string
	for _, c := range claims {
		lines = append(lines, fmt.Sprintf("%s says block %d %s", c.From, c.Value.Number, c.Value.Hash))
	}
	return "no two hosts call a common block final: " + strings.Join(lines, ", ")
}

// finality is what was agreed on, and what is still open. The zero value is ready to use, by several goroutines.
type finality struct {
	asking sync.Mutex // one round at a time
	asked  time.Time
	block  chain.BlockRef // the highest that was agreed on
	err    error          // how the last round ended

	mu sync.Mutex
	// claims are what each endpoint has called final lately, by number.
	claims map[string]map[uint64]chain.Hash
	// alone are the claims above what is agreed on.
	alone map[string]map[uint64]chain.BlockRef
}

// newest returns what was agreed on a moment ago, or asks anew. Whoever comes while somebody else asks gets that
// answer. A block below the one of before counts only where one host is all there is.
func (f *finality) newest(ctx context.Context, fresh time.Duration, need int,
	ask func() (chain.BlockRef, error)) (chain.BlockRef, error) {
	f.asking.Lock()
	defer f.asking.Unlock()
	if !f.asked.IsZero() && time.Since(f.asked) < fresh {
		return f.block, f.err
	}
	block, err := ask()
	if ctx.Err() != nil {
		return block, err // the caller's own fault, and no news for others
	}
	if err == nil && (need < 2 || block.Number >= f.block.Number) {
		f.block = block
	}
	f.asked, f.err = time.Now(), err
	return f.block, err
}

// rememberedClaims is of how many blocks above the agreed one an endpoint's claims are kept, and of how many below.
const rememberedClaims = 64

// claimed returns what an endpoint has called final at a number before.
func (f *finality) claimed(from string, number uint64) (chain.Hash, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hash, is := f.claims[from][number]
	return hash, is
}

// due takes the lone claims of each endpoint that are no longer above a number.
func (f *finality) due(number uint64) map[string][]chain.BlockRef {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := map[string][]chain.BlockRef{}
	for from, alone := range f.alone {
		for n, claim := range alone {
			if n > number {
				continue
			}
			delete(alone, n)
			due[from] = append(due[from], claim)
		}
	}
	return due
}

func (f *finality) note(claims []agreement.Answer[chain.BlockRef], agreed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claims == nil {
		f.claims, f.alone = map[string]map[uint64]chain.Hash{}, map[string]map[uint64]chain.BlockRef{}
	}
	for _, c := range claims {
		if f.claims[c.From] == nil {
			f.claims[c.From], f.alone[c.From] = map[uint64]chain.Hash{}, map[uint64]chain.BlockRef{}
		}
		f.claims[c.From][c.Value.Number] = c.Value.Hash
		// The first claim of a number is the one to be judged: who calls another block final there after a reorg would
		// take the lie back.
		if _, is := f.alone[c.From][c.Value.Number]; !is && c.Value.Number > agreed &&
			len(f.alone[c.From]) < rememberedClaims {
			f.alone[c.From][c.Value.Number] = c.Value
		}
		for n := range f.claims[c.From] {
			if n+rememberedClaims < agreed {
				delete(f.claims[c.From], n)
			}
		}
	}
}
