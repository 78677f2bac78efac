package source

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// store is a chain with a DataStore.
type store struct {
	at chain.Address

	mu    sync.Mutex
	words map[chain.Hash]chain.Uint
	asked int
	away  error
}

func (s *store) Head(context.Context) (chain.BlockRef, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return chain.BlockRef{Number: 5, Hash: chain.Hash{5}}, s.away
}

func (s *store) Call(_ context.Context, to chain.Address, data []byte, block chain.Hash) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if to != s.at || len(data) != 4+Word || block != (chain.Hash{5}) {
		return nil, errors.New("asked for something else")
	}
	word := s.words[chain.Hash(data[4:])].Bytes32()
	return word[:], s.away
}

func (s *store) set(token chain.Address, word uint64, away error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words[perp.DataStoreKey("DOUBLE", token.Hash())], s.away = chain.U64(word), away
}

func (s *store) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// ticking is a source that says the same of two tokens every second.
type ticking struct{ tokens [2]chain.Address }

func (s ticking) Run(ctx context.Context, take price.Take) error {
	return Poll(ctx, time.Second, func(context.Context) error {
		var reports []price.Report
		for _, token := range s.tokens {
			reports = append(reports, price.Report{Token: token, Min: chain.U64(10), Max: chain.U64(20), TimeMs: 5000})
		}
		take(append(reports, price.Report{Token: s.tokens[0], Min: chain.U64(2), Max: chain.U64(1), TimeMs: 5000}), nil)
		return nil
	})
}

// What the exchange's provider makes of a price is read from its DataStore, for each token and again each minute. A
// chain that does not answer holds up no price: the words of before count.
func TestAdjustedByTheExchangesWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		adjusts, plain := chain.Address{1}, chain.Address{2}
		s := &store{at: chain.Address{9}, words: map[chain.Hash]chain.Uint{}}
		s.set(adjusts, 3, nil)
		p := Plugin{
			Open: func(Table, Env) price.Source { return ticking{[2]chain.Address{adjusts, plain}} },
			Adjusts: Adjustment{Word: "DOUBLE", Take: func(p perp.Price, word chain.Uint) perp.Price {
				return perp.Price{Min: p.Min.Mul(word), Max: p.Max.Mul(word)}
			}},
		}
		one := p.Source(Table{Tokens: []Token{{Address: adjusts}, {Address: plain}}},
			Env{Node: s, Timeout: time.Second, DataStore: s.at})
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		defer ended.Wait()
		defer cancel()
		var mu sync.Mutex
		var newest []price.Report
		var unreadable []error
		ended.Go(func() {
			_ = one.Run(ctx, func(reports []price.Report, others []error) {
				mu.Lock()
				defer mu.Unlock()
				newest, unreadable = reports, append(unreadable, others...)
			})
		})
		want := func(when string, taken uint64, failures int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			r := newest[0]
			if r.Min != chain.U64(10) || r.Taken.Min != chain.U64(taken) || r.Taken.Max != chain.U64(2*taken) ||
				newest[1].Taken != (perp.Price{}) || newest[2].Taken != (perp.Price{}) {
				t.Errorf("%s: %+v, want %d..%d taken", when, newest, taken, 2*taken)
			}
			if len(unreadable) < failures || failures == 0 && len(unreadable) > 0 {
				t.Errorf("%s: told %v", when, unreadable)
			}
		}
		want("the first reports", 30, 0)
		mu.Lock()
		taken, asIs := newest[0].Message(), newest[1].Message()
		mu.Unlock()
		if taken.Min != chain.U64(30) || taken.Max != chain.U64(60) || asIs.Min != chain.U64(10) ||
			asIs.Max != chain.U64(20) {
			t.Errorf("the topic has %s..%s, and %s..%s of what the exchange takes as it is", taken.Min, taken.Max,
				asIs.Min, asIs.Max)
		}
		s.set(adjusts, 5, nil)
		time.Sleep(wordsFresh - wordsAgain - time.Second)
		want("within the minute", 30, 0)
		if asked := s.questions(); asked != 2 {
			t.Errorf("asked %d times within a minute", asked)
		}
		time.Sleep(2*wordsAgain + time.Second)
		want("a minute later", 50, 0)
		s.set(adjusts, 7, errors.New("no node answers"))
		time.Sleep(2 * wordsFresh)
		want("while no node answers", 50, 1)
		s.set(adjusts, 7, nil)
		time.Sleep(2*wordsAgain + time.Second)
		want("when one answers again", 70, 1)
	})
}

// hanging is a chain that answers nobody.
type hanging struct{ store }

func (h *hanging) Head(ctx context.Context) (chain.BlockRef, error) {
	<-ctx.Done()
	return chain.BlockRef{}, context.Cause(ctx)
}

// A source that begins again while the chain hangs does not wait for it once more.
func TestNoPriceWaitsForWordsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := Plugin{
			Open:    func(Table, Env) price.Source { return ticking{[2]chain.Address{{1}, {2}}} },
			Adjusts: Adjustment{Word: "DOUBLE"},
		}.Source(Table{Tokens: []Token{{Address: chain.Address{1}}}},
			Env{Node: &hanging{}, Timeout: 2 * time.Second, DataStore: chain.Address{9}})
		for _, want := range []time.Duration{2 * time.Second, 0} {
			ctx, cancel := context.WithCancel(t.Context())
			began, waited := time.Now(), time.Duration(-1)
			_ = one.Run(ctx, func([]price.Report, []error) {
				if waited < 0 {
					waited = time.Since(began)
				}
				cancel()
			})
			cancel()
			if waited != want {
				t.Errorf("the first report came after %s, want %s", waited, want)
			}
		}
	})
}

// A word that makes a price of what nothing costs makes nothing of it: no reader of the topic would take it.
func TestAbsurdWordAdjustsNothing(t *testing.T) {
	token := chain.Address{1}
	a := &adjusted{words: map[chain.Address]chain.Uint{token: chain.Pow10(70)},
		by: Adjustment{Take: func(p perp.Price, word chain.Uint) perp.Price {
			return perp.Price{Min: p.Min, Max: p.Max.Max(word)}
		}}}
	reports, _ := a.adjust([]price.Report{{Token: token, Min: chain.U64(1), Max: chain.U64(2), TimeMs: 5000}}, nil)
	if r := reports[0]; r.Taken != (perp.Price{}) || r.Min != chain.U64(1) || r.Max != chain.U64(2) {
		t.Errorf("%+v", r)
	}
}

// Without a DataStore, and for a kind whose prices are taken as they are, nothing is asked.
func TestNothingToAdjust(t *testing.T) {
	s, by := &store{}, Adjustment{Word: "DOUBLE"}
	open := func(Table, Env) price.Source { return ticking{} }
	for name, one := range map[string]price.Source{
		"no adjustment": Plugin{Open: open}.Source(Table{}, Env{Node: s, DataStore: chain.Address{9}}),
		"no store":      Plugin{Open: open, Adjusts: by}.Source(Table{}, Env{Node: s}),
		"no chain":      Plugin{Open: open, Adjusts: by}.Source(Table{}, Env{DataStore: chain.Address{9}}),
	} {
		if _, is := one.(ticking); !is {
			t.Errorf("%s: %T", name, one)
		}
	}
}
