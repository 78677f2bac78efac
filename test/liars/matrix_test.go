package liars

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"perpkeeper/pkg/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// row is one lie of the fastest or the slowest, always or at times.
type row struct {
	*lie
	slowest bool
	share   int // one in so many answers
}

func (r row) variant() string {
	name, often := "fastest", "always"
	if r.slowest {
		name = "slowest"
	}
	if r.share > 1 {
		often = fmt.Sprintf("one in %d", r.share)
	}
	return name + ", " + often
}

// seldom is how many answers there are to a wrong one where it lies sometimes.
const seldom = 20

// rows are those of the form that KEEPER_LIARS asks for.
func rows(t *testing.T, forms func(*lie) []row, short func(*lie) bool) (list []row) {
	t.Helper()
	form := os.Getenv("KEEPER_LIARS")
	if form == "" {
		t.Skip("set KEEPER_LIARS=full or short, or run make liars")
	}
	for i := range lies {
		l := &lies[i]
		switch all := forms(l); {
		case form == "full":
			list = append(list, all...)
		case short(l):
			list = append(list, all[0])
		}
	}
	return list
}

func everyForm(l *lie) []row {
	if l.change == nil && l.reports == nil {
		return []row{{l, false, 1}}
	}
	return []row{{l, false, 1}, {l, true, 1}, {l, false, seldom}, {l, true, seldom}}
}

func fastestForm(l *lie) []row { return []row{{l, false, 1}} }

// patience bounds what has to happen while one lies. It is a guard against hanging, no statement about speed: that is
// in the table.
const patience = 90 * time.Second

// One of three lies: the tables are what the chain says, whatever was asked for is executed, once, while it lies;
// nothing halts, no process ends, nobody has to help; and where the lie shows, it is named.
func TestOneOfThree(t *testing.T) {
	m := &matrix{endpoints: 3, within: patience}
	m.run(t, rows(t, everyForm, func(l *lie) bool { return l.short }))
}

// One of two lies: nothing wrong is done, and what waits says for what. It goes on by itself when the lie has ended.
func TestOneOfTwo(t *testing.T) {
	m := &matrix{endpoints: 2}
	m.run(t, rows(t, fastestForm, func(l *lie) bool { return l.pair }))
}

// matrix runs rows on one stack, for as long as it is whole.
type matrix struct {
	endpoints int
	// within is how long everything may take while one lies; 0 = it may wait until the lie has ended.
	within time.Duration
	keeper *keeper
	table  table
	usual  tally // of the first row
}

func (m *matrix) run(t *testing.T, list []row) {
	defer func() {
		m.close()
		t.Logf("the table:\n%s", m.table.text(m.within == 0))
	}()
	for lies := range slices.Values(chunks(list)) {
		t.Run(lies[0].name, func(t *testing.T) {
			for _, r := range lies {
				t.Run(r.variant(), func(t *testing.T) {
					m.row(t, r)
				})
			}
		})
	}
	t.Run("the end", m.finish)
}

// chunks puts the rows of a lie together.
func chunks(list []row) (lies [][]row) {
	for _, r := range list {
		if n := len(lies); n > 0 && lies[n-1][0].lie == r.lie {
			lies[n-1] = append(lies[n-1], r)
			continue
		}
		lies = append(lies, []row{r})
	}
	return lies
}

func (m *matrix) close() {
	if m.keeper != nil {
		m.keeper.stop()
		m.keeper = nil
	}
}

// row tries one row. A stack that does not come back by itself is replaced.
func (m *matrix) row(t *testing.T, r row) {
	if m.keeper == nil {
		m.keeper = start(t, m.endpoints)
	} else if err := m.keeper.renew(); err != nil {
		t.Errorf("before the lie: %v", err)
		m.close()
		return
	}
	trial := &trial{keeper: m.keeper, row: r, within: m.within, waits: map[string]int{}}
	problem := trial.run()
	if problem == nil {
		problem = trial.dear(&m.usual)
	}
	m.table.add(r, trial.cell(problem), trial.reasons())
	t.Log(trial.line(problem))
	if problem == nil {
		return
	}
	t.Error(problem)
	for _, p := range m.keeper.Processes {
		t.Logf("--- the end of %s's log:\n%s", p.Name, p.Tail(6))
	}
	if err := trial.recover(); err != nil {
		t.Errorf("it does not come back by itself: %v", err)
		m.close()
	}
}

// finish lets the traders rest, holds prices still and waits until nothing is left to do.
func (m *matrix) finish(t *testing.T) {
	if m.keeper == nil {
		t.Skip("no stack is left")
	}
	k := m.keeper
	if err := k.record.Tell(t.Context(), "devnet_trade", map[string]any{"on": false}); err != nil {
		t.Fatal(err)
	}
	if err := k.record.HoldPrices(t.Context(), k.Devnet); err != nil {
		t.Fatal(err)
	}
	if err := k.await(2*time.Minute, k.idle); err != nil {
		t.Fatal(err)
	}
	if err := k.await(time.Minute, k.whole); err != nil {
		t.Error(err)
	}
	all := k.tallyFrom(0)
	t.Logf("%d transactions executed something, %d reverted; %v", all.executed, all.reverted,
		cmp.Or(k.record.Twice(), fmt.Errorf("nothing was sent twice")))
	if err := k.record.Twice(); err != nil {
		t.Error(err)
	}
}
