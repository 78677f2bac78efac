package evm

import (
	"context"
	"fmt"
	"maps"
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
// An endpoint that calls a branch final which does not hold the block is excluded for finality, and so is one that had
// called another block of its number final before.
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
	for _, from := range c.pool.finality.disproved(agreed.Block, need) {
		c.contradicted(from, ForFinality, fmt.Sprintf("it called another block than %d %s final", agreed.Block.Number,
			agreed.Block.Hash))
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
	// claims are what each endpoint has called final lately, by number. The first of a number stays: who calls another
	// block final there after a reorg would take the lie back.
	claims map[string]map[uint64]chain.Hash
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

// rememberedClaims is of how many blocks below and above the agreed one an endpoint's claims are kept.
const rememberedClaims = 64

// claimed returns what an endpoint has called final at a number before.
func (f *finality) claimed(from string, number uint64) (chain.Hash, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hash, is := f.claims[from][number]
	return hash, is
}

// disproved lists who has called another block final in the place of one that so many hosts agree on.
func (f *finality) disproved(block chain.BlockRef, hosts int) (wrong []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for from, claims := range f.claims {
		if hash, is := claims[block.Number]; is && hash != block.Hash && hosts > 1 {
			wrong = append(wrong, from)
		}
	}
	return wrong
}

func (f *finality) note(claims []agreement.Answer[chain.BlockRef], agreed uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claims == nil {
		f.claims = map[string]map[uint64]chain.Hash{}
	}
	for _, c := range claims {
		own := f.claims[c.From]
		if own == nil {
			own = map[uint64]chain.Hash{}
			f.claims[c.From] = own
		}
		if _, is := own[c.Value.Number]; !is {
			own[c.Value.Number] = c.Value.Hash
		}
		maps.DeleteFunc(own, func(n uint64, _ chain.Hash) bool {
			return n+rememberedClaims < agreed || n > agreed+rememberedClaims
		})
	}
}
