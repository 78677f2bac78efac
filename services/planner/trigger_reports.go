package planner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
)

// triggerReports are the reports that make jobs due. They tell a job that a report made due from one that a change of
// the state made due: only the first has a way from a report to the topic that could be measured. What a pass finds new
// in a market whose newest report no pass had judged with before is laid to that report. What the first pass over a
// market finds may have been due for long, and is laid to none.
type triggerReports struct {
	board  *price.Board
	judged map[chain.Address]uint64       // ms of the newest report that a market was judged with
	fresh  map[chain.Address]price.Report // of the markets of the pass under way
}

func newTriggerReports(board *price.Board) *triggerReports {
	return &triggerReports{board: board, judged: map[chain.Address]uint64{}}
}

// begin starts a pass.
func (t *triggerReports) begin() { t.fresh = map[chain.Address]price.Report{} }

// judge notes that a market is judged at a moment.
func (t *triggerReports) judge(row perp.Market, m *due.Moment) {
	token, newest := chain.Address{}, uint64(0)
	for _, t := range []chain.Address{row.IndexToken, row.LongToken, row.ShortToken} {
		if q, reported := m.Quotes[t]; reported && q.TimeMs > newest {
			token, newest = t, q.TimeMs
		}
	}
	before, known := t.judged[row.MarketToken]
	if newest <= before {
		return
	}
	t.judged[row.MarketToken] = newest
	if r, kept := t.board.At(token, newest); known && kept {
		t.fresh[row.MarketToken] = r
	}
}

// report returns the report that what is new in a market is laid to, if there is one.
func (t *triggerReports) report(market chain.Address) (r price.Report, made bool) {
	r, made = t.fresh[market]
	return r, made
}
