package evm

import (
	"cmp"
	"slices"
)

// spread is ranked for requests of which many are under way at a time, as history takes: each good endpoint gets as
// many as it is fast. The second door of a host comes after all first ones, which are those over HTTP: a WebSocket
// carries one answer after the other.
func (p *pool) spread(purpose Purpose, without []Source) ([]*endpoint, error) {
	places, err := p.places(purpose, without)
	if err != nil {
		return nil, err
	}
	hasHTTP, load := map[string]bool{}, map[string]int64{}
	for _, at := range places {
		load[at.host] += at.underWay.Load()
		hasHTTP[at.host] = hasHTTP[at.host] || at.usability == good && !announces(at.url)
	}
	later := func(at ranking) int {
		if announces(at.url) && hasHTTP[at.host] {
			return 1
		}
		return 0
	}
	expected := func(at ranking) float64 { return (at.score + 1) * float64(1+load[at.host]) }
	slices.SortStableFunc(places, func(a, b ranking) int {
		return cmp.Or(cmp.Compare(a.usability, b.usability), cmp.Compare(later(a), later(b)),
			cmp.Compare(expected(a), expected(b)))
	})
	return upTo(max(last, places[0].usability), places), nil
}

// idlest returns the endpoint that is to be asked first for what is asked of history; nil where none is good.
func (r Reader) idlest(purpose Purpose) *endpoint {
	candidates, err := r.pool.spread(purpose, r.without)
	if err != nil || candidates[0].usable(purpose) != good {
		return nil
	}
	return candidates[0]
}
