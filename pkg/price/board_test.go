package price

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// few bounds the reports of a token in the property test, so that the bound matters.
const few = 40

// twin answers what a Board of few reports answers, by looking through everything it was ever given.
type twin struct{ all []Report }

// floor is the time, in ms, before which reports of a token may have been forgotten.
func (t *twin) floor(token chain.Address) (floor uint64) {
	newest, times := uint64(0), []uint64{}
	for _, r := range t.all {
		if r.Token == token {
			newest, times = max(newest, r.TimeMs), append(times, r.TimeMs)
		}
	}
	if window := uint64(Window.Milliseconds()); newest > window {
		floor = newest - window
	}
	slices.Sort(times)
	if n := len(times); n > few {
		floor = max(floor, times[n-few-1]+1)
	}
	return floor
}

func (t *twin) known(token chain.Address) (within []Report) {
	floor := t.floor(token)
	for _, r := range t.all {
		if r.Token == token && r.TimeMs >= floor {
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

func (t *twin) at(token chain.Address, ms uint64) (r Report, ok bool) {
	for _, r := range t.known(token) {
		if r.TimeMs == ms {
			return r, true
		}
	}
	return Report{}, false
}

func (t *twin) firstAtOrAfter(token chain.Address, second uint64) (best Report, ok bool) {
	if second*1000 < t.floor(token) {
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

func (t *twin) newestWithin(token chain.Address, from, to uint64) (best Report, ok bool) {
	for _, r := range t.known(token) {
		if s := r.Second(); from <= s && s <= to && (!ok || r.TimeMs > best.TimeMs) {
			best, ok = r, true
		}
	}
	return best, ok
}

func token(i int) chain.Address { return chain.Address{19: byte(i + 1)} }

func same(a, b Report) bool { return a.Token == b.Token && a.TimeMs == b.TimeMs && a.Min == b.Min }

func TestBoardIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		board, dumb := newBoard(few), &twin{}
		start := rapid.SampledFrom([]uint64{0, 1_700_000_000}).Draw(t, "start")
		tokens := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) chain.Address {
			return token(rapid.IntRange(0, 3).
				Draw(t, "token"))
		}), 0, 5)
		seconds := rapid.OneOf(rapid.Uint64Range(start, start+1500), rapid.Uint64Range(start+600, start+700))
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := Report{
					Token:  token(rapid.IntRange(0, 2).Draw(t, "token")),
					TimeMs: seconds.Draw(t, "second")*1000 + rapid.SampledFrom([]uint64{0, 1, 500, 999}).Draw(t, "ms"),
					Min:    chain.U64(rapid.Uint64().Draw(t, "price")),
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
			"at": func(t *rapid.T) {
				at, ms := token(rapid.IntRange(0, 3).Draw(t, "token")), seconds.Draw(t, "second")*1000
				if n := len(dumb.all); n > 0 && rapid.Bool().Draw(t, "one that was added") {
					r := dumb.all[rapid.IntRange(0, n-1).Draw(t, "which")]
					at, ms = r.Token, r.TimeMs
				}
				got, ok := board.At(at, ms)
				if want, found := dumb.at(at, ms); ok != found || !same(got, want) {
					t.Fatalf("at %d: %+v, %t; want %+v, %t", ms, got, ok, want, found)
				}
			},
			"first": func(t *rapid.T) {
				at, second := token(rapid.IntRange(0, 3).Draw(t, "token")), seconds.Draw(t, "second")
				got, ok := board.firstAtOrAfter(at, second)
				if want, found := dumb.firstAtOrAfter(at, second); ok != found || !same(got, want) {
					t.Fatalf("first at or after %d: %+v, %t; want %+v, %t", second, got, ok, want, found)
				}
			},
			"within": func(t *rapid.T) {
				at, from := token(rapid.IntRange(0, 3).Draw(t, "token")), seconds.Draw(t, "from")
				to := from + rapid.Uint64Range(0, 100).Draw(t, "length")
				got, ok := board.NewestWithin(at, from, to)
				if want, found := dumb.newestWithin(at, from, to); ok != found || !same(got, want) {
					t.Fatalf("newest within %d and %d: %+v, %t; want %+v, %t", from, to, got, ok, want, found)
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
	if spread, is := errors.AsType[*spreadError](err); !is || spread.Oldest.Token != token(0) ||
		spread.Newest.Token != token(2) {
		t.Errorf("a set 61 s wide: %v", err)
	}
	_, err = Set([]chain.Address{token(0), token(9)}, board.Latest)
	if missing, is := errors.AsType[*missingError](err); !is || missing.Token != token(9) {
		t.Errorf("a set without a report: %v", err)
	}
	if set, err := Set(nil, board.Latest); set != nil || err != nil {
		t.Errorf("an empty set: %v, %v", set, err)
	}
}

// PIPE-9: a board that reads the price topic back picks the same reports as one that was fed by the source.
func TestBoardFromTheTopic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fed, replayed := NewBoard(), NewBoard()
		for range rapid.IntRange(1, 50).Draw(t, "reports") {
			second, price := rapid.Uint64Range(1_700_000_000, 1_700_000_100).Draw(t, "second"),
				rapid.Uint64Range(1, 1000).Draw(t, "price")
			r := Report{
				Token: token(rapid.IntRange(0, 2).Draw(t, "token")), Provider: token(9), Data: []byte{byte(price)},
				Min: chain.U64(price), Max: chain.U64(price + 1),
				TimeMs: second * 1000, Source: "s", ReceivedMs: second*1000 + 20,
			}
			fed.Add(r)
			record, err := wire.Encode(r.Token[:], r.Message(), 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := wire.Decode(record)
			if err != nil {
				t.Fatal(err)
			}
			replayed.Add(FromMessage(m.(wire.Price)))
		}
		for second := range uint64(110) {
			want, wantErr := Set([]chain.Address{token(0), token(1)}, fed.AtOrAfter(1_700_000_000+second))
			got, err := Set([]chain.Address{token(0), token(1)}, replayed.AtOrAfter(1_700_000_000+second))
			if !reflect.DeepEqual(got, want) || (err == nil) != (wantErr == nil) {
				t.Fatalf("at %d: %+v, %v; want %+v, %v", second, got, err, want, wantErr)
			}
		}
	})
}

// A flood of reports does not fill the memory, and old data is let go.
func TestBoardIsBounded(t *testing.T) {
	board := newBoard(10)
	for i := range uint64(1000) {
		board.Add(Report{Token: token(0), TimeMs: 1_700_000_000_000 + i, Data: make([]byte, 1)})
	}
	h := board.tokens[token(0)]
	if len(h.kept) != 10 || cap(h.kept) > 100 || h.floor != 1_700_000_000_990 {
		t.Errorf("%d reports in room for %d, floor %d", len(h.kept), cap(h.kept), h.floor)
	}
	if _, ok := board.firstAtOrAfter(token(0), 1_700_000_000); ok {
		t.Error("the first of a second whose first ones are gone")
	}
}
