package delayed_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/job"
)

// DLY-10: a request that nobody executed in its time is marked and counted.
func TestExpiry(t *testing.T) {
	m := newMemoryStore()
	m.open[chain.Hash{1}] = true
	p := newFixture(m, delayed.DefaultConfig())
	kinds := []delayed.Kind{delayed.Expiries{Log: zerolog.Nop()}}
	p.Scanner = delayed.NewScanner(delayed.DefaultConfig(), "tester", m, kinds, nil, p.metrics, zerolog.Nop())
	for _, key := range []chain.Hash{{1}, {2}} {
		o := delayed.Appointment{Kind: delayed.Expiry, Key: key.Hex(),
			Payload: delayed.Expiring{What: "deposit", Key: key}, DueAt: time.Now()}
		if _, err := m.Add(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	p.scan(t)
	if jobs := m.jobs(t); !strings.Contains(string(jobs[0].Result), `"expired"`) ||
		!strings.Contains(string(jobs[1].Result), "closed in time") {
		t.Errorf("left %s and %s", jobs[0].Result, jobs[1].Result)
	}
	p.wantFigures(t, map[string]float64{"delayed_done_total": 2})
}

// DLY-10: the report of a day is a line of the log and the result of its row.
func TestDailyReport(t *testing.T) {
	var text strings.Builder
	m := newMemoryStore()
	p := newFixture(m, delayed.DefaultConfig(), delayed.Reports{Log: zerolog.New(&text)})
	if _, err := m.Add(t.Context(), delayed.Appointment{Kind: delayed.DailyReport, Key: "2026-02-28",
		DueAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	p.scan(t)
	var day delayed.Day
	if err := json.Unmarshal(m.jobs(t)[0].Result, &day); err != nil || day.Day != "2026-02-28" ||
		!strings.Contains(text.String(), `"day":"2026-02-28"`) {
		t.Errorf("%v: result %s, log %s", err, m.jobs(t)[0].Result, text.String())
	}
}

func TestDayCountsByOutcome(t *testing.T) {
	var d delayed.Day
	for outcome, n := range map[job.Outcome]int{job.Done: 1, job.Reverted: 10, job.Refused: 100, job.LostRace: 1000,
		job.DroppedRecovered: 10_000} {
		d.Count(job.Order, outcome, n)
	}
	if d.Executed[job.Order] != 1 || d.Failed[job.Order] != 110 || d.Other[job.Order] != 11_000 {
		t.Errorf("%+v", d)
	}
}

// books answers a booking with what the test wants.
type books struct {
	asked      []uint64
	of         []int // of which generation
	generation int
	final      uint64
	more       bool
}

func (b *books) Book(_ context.Context, ask delayed.Booking) (delayed.Booked, error) {
	b.asked, b.of = append(b.asked, ask.From), append(b.of, ask.Generation)
	return delayed.Booked{Fees: 1, Generation: b.generation, Final: b.final, More: b.more}, nil
}

// The whole of a generation is looked at once, in as many scans as that takes, and from then on what may still change.
// A state that nobody may act on is not looked at, and nothing of it is forgotten.
func TestBookingsLookBackFarEnough(t *testing.T) {
	b := &books{}
	c := delayed.CommissionConfig{Agents: []delayed.Agent{{Agent: "ann", Signers: []chain.Address{{1}}}}}
	source := delayed.Bookings(b, 56, c)
	for i, step := range []struct {
		ask    uint64
		of     int
		answer books
	}{
		{0, 0, books{generation: 1, final: 900, more: true}},
		{901, 1, books{generation: 1, final: 5000}},
		{4000, 1, books{generation: 1}},
		{4000, 1, books{generation: 2, final: 6000}},
		{5000, 2, books{generation: 2, final: 6000}},
	} {
		b.generation, b.final, b.more = step.answer.generation, step.answer.final, step.answer.more
		if _, err := source.Feed(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.asked[i] != step.ask || b.of[i] != step.of {
			t.Errorf("step %d: asked from block %d of generation %d, want %d of %d", i, b.asked[i], b.of[i], step.ask,
				step.of)
		}
	}
	idle := &books{}
	if n, err := delayed.Bookings(idle, 56, delayed.CommissionConfig{}).Feed(t.Context()); n != 0 || err != nil ||
		idle.asked != nil {
		t.Errorf("without agents: %d, %v, asked %v", n, err, idle.asked)
	}
}

func TestCommissionConfig(t *testing.T) {
	ann := delayed.Agent{Agent: "ann", Signers: []chain.Address{{1}, {2}}}
	for name, c := range map[string]delayed.CommissionConfig{
		"hold: -1s": {Hold: -time.Second},
		"agents[1]: signer " + chain.Address{2}.Hex(): {Agents: []delayed.Agent{ann,
			{Agent: "bob", Signers: []chain.Address{{2}}}}},
		"agents[0]: agent and signers": {Agents: []delayed.Agent{{Agent: "ann"}}},
	} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
	c := delayed.CommissionConfig{Agents: []delayed.Agent{ann}}
	if err := errors.Join(c.Validate(), delayed.DefaultCommissionConfig().Validate()); err != nil ||
		c.Owners()[chain.Address{2}] != "ann" {
		t.Errorf("%v, owners %v", err, c.Owners())
	}
}

func TestIsAnomaly(t *testing.T) {
	if delayed.IsAnomaly(errBroken) || delayed.IsAnomaly(nil) ||
		!delayed.IsAnomaly(errors.Join(errBroken, delayed.Anomalyf("odd: %w", errBroken))) {
		t.Error("what is wrong is not told from what failed")
	}
	if !errors.Is(delayed.Anomalyf("odd: %w", errBroken), errBroken) {
		t.Error("the reason is lost")
	}
}

// Whatever stands in a row, a kind neither panics nor takes what it cannot read for work.
func FuzzPayloads(f *testing.F) {
	f.Add([]byte(`{"agent": "ann", "amount": "1"}`))
	f.Add([]byte(`{"what": "order", "key": "0x00"}`))
	f.Add([]byte(`[1`))
	kinds := []delayed.Kind{
		delayed.Commissions{}, delayed.Expiries{Log: zerolog.Nop()}, delayed.Reports{Log: zerolog.Nop()},
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, k := range kinds {
			_, err := k.Do(t.Context(), &memoryTx{memoryStore: newMemoryStore()},
				delayed.Job{Kind: k.Name(), Key: "2026-01-01", Payload: payload})
			if k.Name() != delayed.DailyReport && !json.Valid(payload) && !delayed.IsAnomaly(err) {
				t.Errorf("%s took %q for work: %v", k.Name(), payload, err)
			}
		}
	})
}
