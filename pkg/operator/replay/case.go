package replay

import (
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/tier/execution"
)

// Case is one publication of a job and all that its decision was made from, to be made again elsewhere: no topic and
// no contract is asked. Its JSON form is what bug reports hold.
type Case struct {
	PublishedJob

	Missing string         // why there is nothing to repeat it from; empty where there is
	At      chain.BlockRef // the state's
	Rules   due.Rules
	Rows    []KeptRow      // those of the state that were looked at
	Reports []price.Report // in the order of the topic, without the signed data
}

// KeptRow is a row of the state as [pg.EncodeRow] writes it.
type KeptRow struct {
	Table perp.Table
	Row   []byte
}

// Gather makes decisions again, as Repeat does, and keeps what each was made from.
func Gather(p *Past, d execution.Decoder, r *Reports, rules due.Rules,
	published []PublishedJob) (all []Case, err error) {
	keep := func(again Repeated, s *state, at chain.BlockRef, counts []int) error {
		c := Case{PublishedJob: again.PublishedJob, Missing: again.Missing, At: at, Rules: rules,
			Reports: r.around(counts)}
		for _, row := range s.seen {
			encoded, err := pg.EncodeRow(row)
			if err != nil {
				return err
			}
			c.Rows = append(c.Rows, KeptRow{row.RowKey().Table, encoded})
		}
		all = append(all, c)
		return nil
	}
	_, err = repeatEach(p, d, r, rules, published, keep)
	return all, err
}

// Again makes the decision again.
func (c Case) Again() (Repeated, error) {
	again := Repeated{PublishedJob: c.PublishedJob, Missing: c.Missing}
	if c.Missing != "" {
		return again, nil
	}
	book, reports := perp.NewBook(), newReports()
	for _, kept := range c.Rows {
		row, err := pg.DecodeRow(kept.Table, kept.Row)
		if err != nil {
			return again, err
		}
		book.Put(row)
	}
	for _, report := range c.Reports {
		reports.Add(report)
	}
	again.repeat(&state{books: []*perp.Book{book}}, c.At, reports, c.Rules, reports.readings(c.Job))
	return again, nil
}

// around are the reports that readings can tell apart: the newest of each token before the first of them, and all from
// there to the last. Put together anew they have the same readings.
func (r *Reports) around(counts []int) (kept []price.Report) {
	if len(counts) == 0 {
		return nil
	}
	first, newest := counts[0], map[int]bool{}
	for _, places := range r.tokens {
		if i, _ := slices.BinarySearch(places, first); i > 0 {
			newest[places[i-1]] = true
		}
	}
	places := slices.Sorted(maps.Keys(newest))
	for at := first; at < counts[len(counts)-1]; at++ {
		places = append(places, at)
	}
	for _, at := range places {
		report := r.all[at]
		report.Data = nil
		kept = append(kept, report)
	}
	return kept
}
