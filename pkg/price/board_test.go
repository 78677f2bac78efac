package price

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// twin answers what a Board answers, by looking through everything it was ever given.
type twin struct{ all []Report }

func (t *twin) known(token chain.Address) (within []Report) {
	newest := uint64(0)
	for _, r := range t.all {
		if r.Token == token {
			newest = max(newest, r.TimeMs)
		}
	}
	for _, r := range t.all {
		old := newest > uint64(Window.Milliseconds()) && r.TimeMs < newest-uint64(Window.Milliseconds())
		if r.Token == token && !old {
			within = append(within, r)
		}
	}
	return within
}

func (t *twin) add(r Report) bool {
	for _, k := range t.all {
		if k.Token == r.Token && k.TimeMs == r.TimeMs {
			return false
		}
	}
	t.all = append(t.all, r)
	return slices.ContainsFunc(t.known(r.Token), func(k Report) bool { return k.TimeMs == r.TimeMs })
}

func (t *twin) latest(token chain.Address) (best Report, ok bool) {
	for _, r := range t.known(token) {
		if !ok || r.TimeMs > best.TimeMs {
			best, ok = r, true
		}
	}
	return best, ok
}

func (t *twin) firstAtOrAfter(token chain.Address, second uint64) (best Report, ok bool) {
	newest, _ := t.latest(token)
	if newest.TimeMs > uint64(Window.Milliseconds()) && second*1000 < newest.TimeMs-uint64(Window.Milliseconds()) {
		return Report{}, false
	}
	for _, r := range t.known(token) {
		if r.TimeMs/1000 >= second && (!ok || r.TimeMs < best.TimeMs) {
			best, ok = r, true
		}
	}
	return best, ok
}

func (t *twin) set(tokens []chain.Address, second uint64) (map[chain.Address]uint64, bool) {
	chosen, oldest, newest := map[chain.Address]uint64{}, uint64(1<<62), uint64(0)
	for _, token := range tokens {
		r, ok := t.firstAtOrAfter(token, second)
		if !ok {
			return nil, false
		}
		chosen[token], oldest, newest = r.TimeMs, min(oldest, r.TimeMs/1000), max(newest, r.TimeMs/1000)
	}
	return chosen, len(chosen) == 0 || newest-oldest <= 60
}

func token(i int) chain.Address { return chain.Address{19: byte(i + 1)} }

func same(a, b Report) bool { return a.Token == b.Token && a.TimeMs == b.TimeMs && a.Min == b.Min }

func TestBoardIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		board, dumb := NewBoard(), &twin{}
		start := rapid.SampledFrom([]uint64{0, 1_700_000_000}).Draw(t, "start")
		tokens := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) chain.Address { return token(rapid.IntRange(0, 3).Draw(t, "token")) }), 0, 5)
		seconds := rapid.Uint64Range(start, start+1500)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := Report{
					Token:  token(rapid.IntRange(0, 2).Draw(t, "token")),
					TimeMs: seconds.Draw(t, "second")*1000 + rapid.SampledFrom([]uint64{0, 1, 500, 999}).Draw(t, "ms"),
					Min:    perp.U64(rapid.Uint64().Draw(t, "price")),
				}
				if got, want := board.Add(r), dumb.add(r); got != want {
					t.Fatalf("added %+v: learnt %t, want %t", r, got, want)
				}
			},
			"latest": func(t *rapid.T) {
				at := token(rapid.IntRange(0, 3).Draw(t, "token"))
				got, ok := board.Latest(at)
				if want, found := dumb.latest(at); ok != found || !same(got, want) {
					t.Fatalf("latest %+v, %t; want %+v, %t", got, ok, want, found)
				}
			},
			"first": func(t *rapid.T) {
				at, second := token(rapid.IntRange(0, 3).Draw(t, "token")), seconds.Draw(t, "second")
				got, ok := board.FirstAtOrAfter(at, second)
				if want, found := dumb.firstAtOrAfter(at, second); ok != found || !same(got, want) {
					t.Fatalf("first at or after %d: %+v, %t; want %+v, %t", second, got, ok, want, found)
				}
			},
			"set": func(t *rapid.T) {
				wanted, second := tokens.Draw(t, "tokens"), seconds.Draw(t, "second")
				set, err := Set(wanted, board.AtOrAfter(second))
				chosen, fits := dumb.set(wanted, second)
				if fits != (err == nil) {
					t.Fatalf("set of %v at %d: %v, want %t", wanted, second, err, fits)
				}
				if err == nil && len(set) != len(chosen) {
					t.Fatalf("%d reports for %d tokens", len(set), len(chosen))
				}
				for _, r := range set {
					if chosen[r.Token] != r.TimeMs {
						t.Fatalf("report of %s at %d, want %d", r.Token, r.TimeMs, chosen[r.Token])
					}
				}
			},
		})
	})
}

func TestSetNamesWhatIsWrong(t *testing.T) {
	board := NewBoard()
	for i, second := range []uint64{1000, 1060, 1061} {
		board.Add(Report{Token: token(i), TimeMs: second*1000 + 999})
	}
	order := []chain.Address{token(1), token(0), token(1)}
	set, err := Set(order, board.Latest)
	if err != nil || len(set) != 2 || set[0].Token != token(1) || set[1].Token != token(0) {
		t.Errorf("a set 60 s wide: %+v, %v", set, err)
	}
	_, err = Set([]chain.Address{token(0), token(2)}, board.Latest)
	if spread, is := errors.AsType[*SpreadError](err); !is || spread.Oldest.Token != token(0) || spread.Newest.Token != token(2) {
		t.Errorf("a set 61 s wide: %v", err)
	}
	_, err = Set([]chain.Address{token(0), token(9)}, board.Latest)
	if missing, is := errors.AsType[*MissingError](err); !is || missing.Token != token(9) {
		t.Errorf("a set without a report: %v", err)
	}
	if set, err := Set(nil, board.Latest); set != nil || err != nil {
		t.Errorf("an empty set: %v, %v", set, err)
	}
}
