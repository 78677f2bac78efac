package preflight

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/txmgr/txmanager"
)

// adjusting is a state with words on the age of reports.
type adjusting struct {
	written
	words
	said map[chain.Hash]uint64
	fail error
}

func (a *adjusting) Parameters(_ context.Context, keys []chain.Hash) (known []perp.Parameter, err error) {
	for _, key := range keys {
		if seconds, is := a.said[key]; is {
			known = append(known, perp.Parameter{Key: key, Value: chain.U64(seconds).Bytes32()})
		}
	}
	return known, a.fail
}

// An exchange whose oracle takes reports to be older than they say refuses the first one of a request's own
// second, for ever. The first that is young enough, so reckoned, is taken; each token has its own word.
func TestReportsAreAsOldAsTheOracleTakesThemToBe(t *testing.T) {
	usdt, now := chain.Address{19: 8}, time.Unix(1000, 0)
	state := &adjusting{said: map[chain.Hash]uint64{
		perp.DataStoreKey("ORACLE_TIMESTAMP_ADJUSTMENT", chain.Address{9}.Hash(), weth.Hash()): 2,
		// another provider's
		perp.DataStoreKey("ORACLE_TIMESTAMP_ADJUSTMENT", chain.Address{8}.Hash(), usdt.Hash()): 5,
	}}
	quotes := quotesOf()
	for second := uint64(60); second < 65; second++ {
		quotes.Add(reportAt(weth, second*1000+100))
		quotes.Add(reportAt(usdt, second*1000+200))
	}
	p := New(Config{Venue: venueOf(job.Order)}, Parts{State: state, Quotes: quotes,
		Head: horizonAt(64_000, now), Clock: func() time.Time { return now },
		Metrics: NewMetrics(prometheus.NewRegistry())})
	r := p.Checker(chain.Address{1}, func() {})
	defer r.Close()
	j := job.Job{ID: "order:x:1", Kind: job.Order, Key: chain.Hash{1}, Tokens: []chain.Address{weth, usdt}}
	chosen := func(from uint64, first bool) ([]price.Report, txmanager.Verdict) {
		_, reports, v := r.prepare(j, terms{window: perp.Window{From: from, To: 360}, first: first}, 0)
		return reports, v
	}
	at := func(from uint64, first bool, want ...uint64) {
		t.Helper()
		reports, v := chosen(from, first)
		if len(reports) != len(want) {
			t.Fatalf("from %d: %d reports, %+v", from, len(reports), v)
		}
		for i, report := range reports {
			if report.Second() != want[i] {
				t.Errorf("from %d: the report of %s is of second %d, want %d", from, report.Token, report.Second(),
					want[i])
			}
		}
	}
	at(60, true, 60, 60) // the words have not been read
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	at(60, true, 62, 60)
	at(62, false, 64, 64)
	for _, first := range []bool{true, false} {
		if _, v := chosen(63, first); v.Kind != txmanager.Retry || !strings.Contains(v.Reason, weth.String()) {
			t.Errorf("none is young enough yet: %+v", v)
		}
	}
	clear(state.said)
	now = now.Add(wordsFresh - 1)
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	at(60, true, 62, 60) // the words are not read again so soon
	now, state.fail = now.Add(1), errors.New("no connection")
	if err := p.Refresh(t.Context()); !errors.Is(err, state.fail) {
		t.Errorf("a state that does not answer: %v", err)
	}
	at(60, true, 62, 60)
	state.fail = nil
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	at(60, true, 60, 60)
}

// A keeper that comes to a request late finds its first report older than the exchange takes any: it takes the first
// that is not, so long as the request has not expired.
func TestReportTooOldForTheVenueIsPassedOver(t *testing.T) {
	state := &adjusting{said: map[chain.Hash]uint64{}}
	quotes := quotesOf()
	for second := uint64(60); second <= 500; second++ {
		quotes.Add(reportAt(weth, second*1000+100))
	}
	now := time.Unix(1000, 0)
	for name, tt := range map[string]struct{ age, head, want uint64 }{
		"young":               {300, 100, 60},
		"as old as it may be": {300, 355, 60},
		"older":               {300, 400, 105},
		"by less":             {30, 100, 75},
		"by next to nothing":  {4, 100, 98},
	} {
		state.said[mostAge] = tt.age
		p := New(Config{Venue: venueOf(job.Order)}, Parts{State: state, Quotes: quotes,
			Head: horizonAt(tt.head*1000, now), Clock: func() time.Time { return now },
			Metrics: NewMetrics(prometheus.NewRegistry())})
		if err := p.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := p.Checker(chain.Address{1}, func() {})
		j := job.Job{ID: "order:x:1", Kind: job.Order, Key: chain.Hash{1}, Tokens: []chain.Address{weth}}
		_, reports, v := r.prepare(j, terms{window: perp.Window{From: 60, To: 960}, first: true}, 0)
		r.Close()
		if len(reports) != 1 || reports[0].Second() != tt.want {
			t.Errorf("%s: %+v, %+v, want one of second %d", name, reports, v, tt.want)
		}
	}
}

// What the exchange reads on the chain itself is of the block that the transaction lands in: of such a token the newest
// report is taken, and of the others the first that is near enough to that block. A keeper that comes to a request
// after a minute would choose its first report again and again otherwise.
func TestReportsGoWithWhatIsReadOnTheChain(t *testing.T) {
	usdt, now := chain.Address{19: 8}, time.Unix(1000, 0)
	for name, tt := range map[string]struct{ head, weth, usdt uint64 }{
		"at once":        {63, 60, 63},
		"within the gap": {115, 60, 115},
		"a minute later": {130, 75, 130},
	} {
		quotes := quotesOf()
		for second := uint64(50); second <= tt.head; second++ {
			read := reportAt(usdt, second*1000+300)
			read.Data = nil
			quotes.Add(read)
			quotes.Add(reportAt(weth, second*1000+100))
		}
		p := New(Config{Venue: venueOf(job.Order)}, Parts{
			State: &adjusting{said: map[chain.Hash]uint64{}}, Quotes: quotes,
			Head: horizonAt(tt.head*1000+300, now), Clock: func() time.Time { return now },
			Metrics: NewMetrics(prometheus.NewRegistry())})
		r := p.Checker(chain.Address{1}, func() {})
		j := job.Job{ID: "order:x:1", Kind: job.Order, Key: chain.Hash{1}, Tokens: []chain.Address{weth, usdt}}
		_, reports, v := r.prepare(j, terms{window: perp.Window{From: 60, To: 360}, first: true}, 0)
		r.Close()
		if len(reports) != 2 || reports[0].Second() != tt.weth || reports[1].Second() != tt.usdt {
			t.Errorf("%s: %+v, %+v, want those of seconds %d and %d", name, reports, v, tt.weth, tt.usdt)
		}
	}
}
