package planner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
)

// makers are the reports that make jobs due. They tell a job that a report made due from one that a change of the state
// made due: only the first has a way from a report to the topic that could be measured. What a pass finds new in a
// market whose newest report no pass had judged with before is laid to that report. What the first pass over a market
// finds may have been due for long, and is laid to none.
type makers struct {
	board  *price.Board
	judged map[chain.Address]uint64       // ms of the newest report that a market was judged with
	fresh  map[chain.Address]price.Report // of the markets of the pass under way
}

func newMakers(board *price.Board) *makers {
	return &makers{board: board, judged: map[chain.Address]uint64{}}
}

// begin starts a pass.
func (f *makers) begin() { f.fresh = map[chain.Address]price.Report{} }

// judge notes that a market is judged at a moment.
func (f *makers) judge(row perp.Market, m *due.Moment) {
	token, newest := chain.Address{}, uint64(0)
	for _, t := range []chain.Address{row.IndexToken, row.LongToken, row.ShortToken} {
		if q, reported := m.Quotes[t]; reported && q.TimeMs > newest {
			token, newest = t, q.TimeMs
		}
	}
	before, known := f.judged[row.MarketToken]
	if newest <= before {
		return
	}
	f.judged[row.MarketToken] = newest
	if r, kept := f.board.At(token, newest); known && kept {
		f.fresh[row.MarketToken] = r
	}
}

// report returns the report that what is new in a market is laid to, if there is one.
func (f *makers) report(market chain.Address) (r price.Report, made bool) {
	r, made = f.fresh[market]
	return r, made
}
