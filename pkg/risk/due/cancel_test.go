package due

import (
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// cancels is a moment of a keeper that cancels what expired, of a venue of a version.
func cancels(v perp.Version) *Moment {
	m := moment()
	m.Rules.CancelExpired = true
	all, _ := m.Rows.(rows)
	p := perp.HandlerVersion(chain.Address{}, v)
	all[p.RowKey()] = p
	return m
}

// What expired is cancelled where this keeper does that and the venue lets it; an order that waits for a price never,
// however old it is; nothing before its time.
func TestCancelsWhatExpired(t *testing.T) {
	deposit := func(age uint64) perp.Request {
		return perp.Request{Kind: perp.Deposit, Key: chain.Hash{1}, Account: alice, Market: ethMarket.MarketToken,
			UpdatedAtTime: chain.U64(nowMs/1000 - age), Status: perp.Created}
	}
	old := func(kind perp.OrderType, age uint64) perp.Order {
		return order(kind, 4600, func(o *perp.Order) { o.UpdatedAtTime = chain.U64(nowMs/1000 - age) })
	}
	shift, done := deposit(301), deposit(301)
	shift.Kind, done.Status = perp.GlvShift, perp.Cancelled
	request := func(r perp.Request) func(*Moment) Decision {
		return func(m *Moment) Decision { return m.Request(r) }
	}
	ofOrder := func(kind perp.OrderType, age uint64) func(*Moment) Decision {
		return func(m *Moment) Decision { return m.Order(old(kind, age), long(5000)) }
	}
	now, before, off := cancels(perp.V22c), cancels(perp.V22b), cancels(perp.V22c)
	off.Rules.CancelExpired = false
	for name, c := range map[string]struct {
		m    *Moment
		of   func(*Moment) Decision
		kind job.Kind
		why  string // empty = due
	}{
		"a deposit":      {now, request(deposit(301)), "cancelDeposit", ""},
		"a market order": {now, ofOrder(perp.MarketSwap, 301), "cancelOrder", ""},
		"not expired":    {now, request(deposit(300)), "cancelDeposit", "it has not expired"},
		"ended":          {now, request(done), "cancelDeposit", "it has not expired"},
		"a GLV shift":    {now, request(shift), "", "the venue lets nobody cancel"},
		"switched off":   {off, request(deposit(301)), "cancelDeposit", "planner.cancel_expired"},
		"v2.2b":          {before, request(deposit(301)), "cancelDeposit", "before v2.2c"},
		"a limit order":  {now, ofOrder(perp.LimitIncrease, 1e6), "cancelOrder", "it has not expired"},
		"a stop loss":    {now, ofOrder(perp.StopLossDecrease, 1e6), "cancelOrder", "it has not expired"},
		"a limit swap":   {now, ofOrder(perp.LimitSwap, 1e6), "cancelOrder", "it has not expired"},
	} {
		of := c.of(c.m)
		d := c.m.Cancel(of)
		if d.Due != (c.why == "") || !strings.Contains(d.Why, c.why) || d.Job.Kind != c.kind {
			t.Errorf("%s: a %s is due %t because %q", name, d.Job.Kind, d.Due, d.Why)
		}
		if d.Due && (d.Job.ID != job.CancelID(of.Job) || d.Job.Key != of.Job.Key || d.Job.Account != alice ||
			d.Job.Class != job.ClassCleanup || d.Job.ExpiresMs != 0 || d.Job.DueSinceMs != nowMs-1000 ||
			d.PriceBorn() ||
			len(d.Job.Tokens) != 0) {
			t.Errorf("%s: %+v", name, d.Job)
		}
	}
}

// Every keeper comes to the same due time of a cancel, whenever it looks, and there is one for each life.
func TestCancelsAreRenewed(t *testing.T) {
	var dueTimes []uint64
	for _, lateMs := range []uint64{450, 299_999, 300_000, 301_000, 3_000_450} {
		m := cancels(perp.V22c)
		m.Block.TimeMs = nowMs + 300_000 + lateMs
		d := m.Cancel(m.Request(perp.Request{Kind: perp.Withdrawal, Market: ethMarket.MarketToken,
			UpdatedAtTime: chain.U64(nowMs / 1000), Status: perp.Created}))
		if !d.Due || d.Job.LifeEndsMs() <= m.Block.TimeMs {
			t.Errorf("%d ms late: %+v", lateMs, d)
		}
		dueTimes = append(dueTimes, d.Job.DueSinceMs-nowMs)
	}
	if want := []uint64{300_000, 300_000, 600_000, 600_000, 3_300_000}; !slices.Equal(dueTimes, want) {
		t.Errorf("born at %v, want %v", dueTimes, want)
	}
}
