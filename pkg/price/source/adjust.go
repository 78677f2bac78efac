package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// Adjustment is what the exchange's provider makes of the prices of a kind of service. The zero value: it takes them as
// they are.
type Adjustment struct {
	// Word is the name of the word of the DataStore that says how, and whose one argument is the token.
	Word string
	// Take returns what the provider takes for a price that can be, by a word that is not zero.
	Take func(p perp.Price, word chain.Uint) perp.Price
}

// How long words count as read, and how long a question that failed is not repeated.
const (
	wordsFresh = time.Minute
	wordsAgain = 5 * time.Second
)

// adjusted is a source whose reports say what the exchange's provider makes of them. The words are read before the
// first report and again and again, beside them. Where they cannot be read, those that were read last count, or none,
// and that is told as of a report that cannot be read: no price waits for it, also where the source begins again.
type adjusted struct {
	source price.Source
	by     Adjustment
	tokens []chain.Address
	env    Env

	first sync.Once // the first reading, which reports wait for, as long as one request may take

	mu    sync.Mutex
	words map[chain.Address]chain.Uint
	read  time.Time // when they were; zero before the first time
	fails error     // why not, if nobody has been told yet
}

// Source opens the source of a valid table, as Open does. Where the chain and the exchange's DataStore are known, its
// reports say what the exchange's provider makes of them ([price.Report.Taken]).
func (p Plugin) Source(t Table, env Env) price.Source {
	s := p.Open(t, env)
	if p.Adjusts.Word == "" || env.Node == nil || env.DataStore.IsZero() {
		return s
	}
	a := &adjusted{source: s, by: p.Adjusts, env: env}
	for _, token := range t.Tokens {
		a.tokens = append(a.tokens, token.Address)
	}
	return a
}

// Run implements price.Source.
func (a *adjusted) Run(ctx context.Context, take price.Take) error {
	a.first.Do(func() { a.refresh(ctx) })
	reading, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() {
		_ = Poll(reading, wordsAgain, func(ctx context.Context) error { // ends with the source alone
			a.refresh(ctx)
			return nil
		})
	})
	return a.source.Run(ctx, func(reports []price.Report, unreadable []error) {
		take(a.adjust(reports, unreadable))
	})
}

// adjust notes what the provider makes of each report, and adds why the words could not be read, once.
func (a *adjusted) adjust(reports []price.Report, unreadable []error) ([]price.Report, []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, r := range reports {
		word := a.words[r.Token]
		if word.IsZero() || r.Validate() != nil {
			continue
		}
		taken := a.by.Take(perp.Price{Min: r.Min, Max: r.Max}, word)
		if r.Min, r.Max = taken.Min, taken.Max; r.Validate() == nil { // a word can be anything, and readers refuse such
			reports[i].Taken = taken
		}
	}
	if a.fails != nil {
		unreadable, a.fails = append(unreadable, a.fails), nil
	}
	return reports, unreadable
}

// refresh reads the words again if it is time.
func (a *adjusted) refresh(ctx context.Context) {
	a.mu.Lock()
	fresh := !a.read.IsZero() && time.Since(a.read) < wordsFresh
	a.mu.Unlock()
	if fresh {
		return
	}
	began := time.Now()
	words, err := a.ask(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.words, a.read, a.fails = words, began, nil
	case ctx.Err() == nil:
		a.fails = err
	}
}

// ask reads the words of all tokens after the newest block.
func (a *adjusted) ask(ctx context.Context) (map[chain.Address]chain.Uint, error) {
	const atOnce = 8
	ctx, cancel := context.WithTimeout(ctx, a.env.Timeout)
	defer cancel()
	head, err := a.env.Node.Head(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s from the DataStore: %w", a.by.Word, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	read := make([]chain.Uint, len(a.tokens))
	for i, token := range a.tokens {
		group.Go(func() (err error) {
			if read[i], err = a.word(ctx, token, head.Hash); err != nil {
				return fmt.Errorf("reading %s of %s from the DataStore: %w", a.by.Word, token, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	words := map[chain.Address]chain.Uint{}
	for i, token := range a.tokens {
		words[token] = read[i]
	}
	return words, nil
}

// word reads the word of a token after a block.
func (a *adjusted) word(ctx context.Context, token chain.Address, block chain.Hash) (chain.Uint, error) {
	selector, key := chain.Keccak256([]byte("getUint(bytes32)")), perp.DataStoreKey(a.by.Word, token.Hash())
	out, err := a.env.Node.Call(ctx, a.env.DataStore, append(selector[:4:4], key[:]...), block)
	if err == nil && len(out) != Word {
		err = fmt.Errorf("%d bytes came back in place of a word", len(out))
	}
	if err != nil {
		return chain.Uint{}, err
	}
	return chain.UintFromBytes(out), nil
}
