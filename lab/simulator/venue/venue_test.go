package venue_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

const (
	second = 1_700_000_000 // of the blocks, unless a test says otherwise
	cents  = 60_000        // the index price at which positions are opened
)

var (
	keeper = chain.Address{0xee}
	trader = chain.Address{0x77}
)

// fixture is an exchange with rows, and a keeper that calls it.
type fixture struct {
	*venue.Venue
	t    testing.TB
	rows *perp.Book
	log  uint32
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	p := &fixture{Venue: venue.New(2), t: t, rows: perp.NewBook()}
	for _, row := range p.InitialRows() {
		p.rows.Put(row)
	}
	return p
}

// at is the next place in a block of a second.
func (p *fixture) at(sec uint64) perp.Stamp {
	p.log += 10
	return perp.Stamp{Block: sec, Log: p.log, TimeMs: sec * 1000}
}

// do has a trader act in a second, and returns how many events came of it.
func (p *fixture) do(sec uint64, act venue.Act) int {
	p.t.Helper()
	events := act(p.rows, p.at(sec))
	for _, e := range events {
		if err := perp.Apply(p.rows, e); err != nil {
			p.t.Fatal(err)
		}
	}
	return len(events)
}

func (p *fixture) market() perp.Market { return p.Markets()[0] }

func (p *fixture) order(t perp.OrderType, trigger, acceptable uint64) chain.Hash {
	p.t.Helper()
	key, act := p.Place(perp.Order{
		Account: trader, Market: p.market().MarketToken, InitialCollateralToken: venue.Dollar, OrderType: t,
		IsLong:       true,
		SizeDeltaUsd: chain.U64(1000).Mul(perp.One), InitialCollateralDeltaAmount: chain.U64(100).Mul(chain.Pow10(18)),
		TriggerPrice: venue.Price(trigger).Min, AcceptablePrice: venue.Price(acceptable).Min,
	})
	p.do(second, act)
	return key
}

// long opens a long of $10 000 with so many dollars of collateral.
func (p *fixture) long(dollars uint64) job.Job {
	p.t.Helper()
	size := chain.U64(10_000).Mul(perp.One)
	key, act := p.Open(perp.Position{
		Account: trader, Market: p.market().MarketToken, CollateralToken: venue.Dollar, IsLong: true, SizeInUsd: size,
		SizeInTokens: size.Div(venue.Price(cents).Min), CollateralAmount: chain.U64(dollars).Mul(chain.Pow10(18)),
	})
	p.do(second, act)
	return job.Job{Kind: job.Liquidation, Key: key, Account: trader, Market: p.market().MarketToken,
		Collateral: venue.Dollar, IsLong: true}
}

func (p *fixture) ask(k perp.RequestKind) job.Job {
	p.t.Helper()
	key, act := p.Ask(k, trader, p.market().MarketToken)
	p.do(second, act)
	return job.Job{Kind: job.Kind(k), Key: key}
}

// try is how a job is executed.
type try struct {
	index       uint64 // cents
	reported    uint64 // the second of the reports
	block       uint64 // the second of the block
	gas         uint64
	withoutTwin bool // the dollar is not reported
	rehearsal   bool
}

func usual() try { return try{index: cents, reported: second, block: second, gas: 6_000_000} }

func (p *fixture) execute(j job.Job, how try) venue.Effect {
	p.t.Helper()
	var prices gmx.SetPrices
	add := func(token chain.Address, at uint64) {
		r := venue.Report(token, venue.Price(at), how.reported*1000+999)
		prices.Tokens, prices.Providers, prices.Data = append(prices.Tokens, r.Token),
			append(prices.Providers, r.Provider), append(prices.Data, r.Data)
	}
	add(p.market().IndexToken, how.index)
	if !how.withoutTwin {
		add(venue.Dollar, 100)
	}
	to, data, err := venue.Contracts().Call(j, prices)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.Execute(p.rows, venue.Call{From: keeper, To: to, Data: data, Gas: how.gas}, p.at(how.block), how.rehearsal)
}

func orderJob(key chain.Hash) job.Job { return job.Job{Kind: job.Order, Key: key} }

// What the exchange refuses, and with which error, as reference and the original contracts have it.
func TestRefusals(t *testing.T) {
	const enough = 1_000_000 // cents
	for name, c := range map[string]struct {
		job   func(p *fixture) job.Job
		how   func(h *try)
		want  string // name of the error
		class gmx.RevertClass
		gas   uint64
	}{
		"an order nobody placed": {job: func(*fixture) job.Job { return orderJob(chain.Hash{1}) }, want: "EmptyOrder",
			class: gmx.DoneElsewhere, gas: 573_000},
		"an order that was executed": {
			job: func(p *fixture) job.Job {
				j := orderJob(p.order(perp.MarketIncrease, 0, enough))
				p.execute(j, usual())
				return j
			},
			want: "EmptyOrder", class: gmx.DoneElsewhere, gas: 573_000,
		},
		"a trigger that is not reached": {
			job:  func(p *fixture) job.Job { return orderJob(p.order(perp.LimitIncrease, cents-1, enough)) },
			want: "InvalidOrderPrices", class: gmx.Recovered, gas: 854_000,
		},
		"a stop-loss without a position": {
			job:  func(p *fixture) job.Job { return orderJob(p.order(perp.StopLossDecrease, cents, 0)) },
			want: "EmptyPosition", class: gmx.Recovered, gas: 573_000,
		},
		"a frozen order": {
			job: func(p *fixture) job.Job {
				j := orderJob(p.order(perp.LimitIncrease, cents, cents-1))
				p.execute(j, usual())
				return j
			},
			want: "InvalidKeeperForFrozenOrder", class: gmx.NeedsRole, gas: 573_000,
		},
		"a report from before the order": {
			job: func(p *fixture) job.Job { return orderJob(p.order(perp.MarketIncrease, 0, enough)) },
			how: func(h *try) { h.reported-- }, want: "OracleTimestampsAreSmallerThanRequired", class: gmx.NeedsReport,
			gas: 854_000,
		},
		"a report from after the order's time": {
			job:   func(p *fixture) job.Job { return orderJob(p.order(perp.MarketIncrease, 0, enough)) },
			how:   func(h *try) { h.reported, h.block = second+301, second+301 },
			want:  "OracleTimestampsAreLargerThanRequestExpirationTime",
			class: gmx.Expired, gas: 854_000,
		},
		"a report that is old by now": {
			job: func(p *fixture) job.Job { return orderJob(p.order(perp.MarketIncrease, 0, enough)) },
			how: func(h *try) { h.block += 301 }, want: "MaxPriceAgeExceeded", class: gmx.NeedsReport, gas: 854_000,
		},
		"no report of a token": {
			job: func(p *fixture) job.Job { return orderJob(p.order(perp.MarketIncrease, 0, enough)) },
			how: func(h *try) { h.withoutTwin = true }, want: "EmptyPrimaryPrice", class: gmx.NeedsReport, gas: 854_000,
		},
		"a healthy position": {
			job:  func(p *fixture) job.Job { return p.long(1000) },
			want: "PositionShouldNotBeLiquidated", class: gmx.Recovered, gas: 1_909_000,
		},
		"a position that was liquidated": {
			job: func(p *fixture) job.Job {
				j, h := p.long(1000), usual()
				h.index = cents * 9 / 10
				p.execute(j, h)
				return j
			},
			want: "EmptyOrder", class: gmx.DoneElsewhere, gas: 1_296_000,
		},
		"a report from before the position": {
			job: func(p *fixture) job.Job { return p.long(1000) },
			how: func(h *try) { h.reported-- }, want: "OracleTimestampsAreSmallerThanRequired", class: gmx.NeedsReport,
			gas: 1_909_000,
		},
		"a deposit nobody asked for": {
			job: func(*fixture) job.Job { return job.Job{Kind: job.Deposit, Key: chain.Hash{1}} }, want: "EmptyDeposit",
			class: gmx.DoneElsewhere, gas: 573_000,
		},
		"a withdrawal nobody asked for": {
			job:  func(*fixture) job.Job { return job.Job{Kind: job.Withdrawal, Key: chain.Hash{1}} },
			want: "EmptyWithdrawal", class: gmx.DoneElsewhere, gas: 573_000,
		},
		"a shift nobody asked for": {
			job: func(*fixture) job.Job { return job.Job{Kind: job.Shift, Key: chain.Hash{1}} }, want: "EmptyShift",
			class: gmx.DoneElsewhere, gas: 573_000,
		},
		"a GLV deposit nobody asked for": {
			job:  func(*fixture) job.Job { return job.Job{Kind: job.GlvDeposit, Key: chain.Hash{1}} },
			want: "GlvDepositNotFound", class: gmx.DoneElsewhere, gas: 573_000,
		},
		"a GLV withdrawal nobody asked for": {
			job:  func(*fixture) job.Job { return job.Job{Kind: job.GlvWithdrawal, Key: chain.Hash{1}} },
			want: "GlvWithdrawalNotFound", class: gmx.DoneElsewhere, gas: 573_000,
		},
		"a GLV shift nobody asked for": {
			job:  func(*fixture) job.Job { return job.Job{Kind: job.GlvShift, Key: chain.Hash{1}} },
			want: "GlvShiftNotFound", class: gmx.DoneElsewhere, gas: 573_000,
		},
		"a deposit that has expired": {
			job:   func(p *fixture) job.Job { return p.ask(perp.Deposit) },
			how:   func(h *try) { h.reported, h.block = second+301, second+301 },
			want:  "OracleTimestampsAreLargerThanRequestExpirationTime",
			class: gmx.Expired, gas: 854_000,
		},
		"a keeper without a role": {
			job: func(p *fixture) job.Job {
				p.Revoke(keeper, true)
				return orderJob(p.order(perp.MarketIncrease, 0, enough))
			},
			want: "Unauthorized", class: gmx.NeedsRole, gas: 100_000,
		},
		"a poisoned job": {
			job: func(p *fixture) job.Job {
				j := p.ask(perp.Deposit)
				p.Poison(j.Key, venue.Open)
				return j
			},
			how: func(h *try) { h.rehearsal = true }, want: "", class: gmx.UnknownRevert, gas: 854_000,
		},
		"a job that is poisoned in secret": {
			job: func(p *fixture) job.Job {
				j := p.ask(perp.Deposit)
				p.Poison(j.Key, venue.Hidden)
				return j
			},
			want: "", class: gmx.UnknownRevert, gas: 854_000,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, how := newFixture(t), usual()
			j := c.job(p)
			if c.how != nil {
				c.how(&how)
			}
			before := rowsOf(p.rows)
			e := p.execute(j, how)
			r := gmx.DecodeRevert(e.Revert)
			if e.OK || r.Name != c.want || r.Class != c.class || e.GasUsed != c.gas || e.Kind != j.Kind ||
				e.Key != j.Key {
				t.Errorf("got %t %s (%s) for %d gas, want %s (%s) for %d", e.OK, r, r.Class, e.GasUsed, c.want, c.class,
					c.gas)
			}
			if after := rowsOf(p.rows); !reflect.DeepEqual(before, after) {
				t.Error("what was refused has left something behind")
			}
		})
	}
}

func rowsOf(b *perp.Book) (all []perp.Row) {
	for _, table := range perp.Tables() {
		all = append(all, b.Rows(table)...)
	}
	return all
}

// TIER-18: a loser burns 24 % of an order and 54 % of a liquidation.
func TestLosersGas(t *testing.T) {
	p := newFixture(t)
	for j, want := range map[*job.Job]float64{new(orderJob(p.order(perp.MarketIncrease, 0, 2*cents))): 0.24,
		new(p.long(1000)): 0.54} {
		how := usual()
		how.index = cents * 9 / 10
		won, lost := p.execute(*j, how), p.execute(*j, how)
		if ratio := float64(lost.GasUsed) / float64(won.GasUsed); !won.OK || lost.OK || math.Abs(ratio-want) > 0.005 {
			t.Errorf("%s: the loser burns %.3f of %d gas, want %.2f", j.Kind, ratio, won.GasUsed, want)
		}
	}
}

// What the exchange executes, with which logs, and what becomes of the rows.
func TestExecutions(t *testing.T) {
	for name, c := range map[string]struct {
		job  func(p *fixture) job.Job
		how  func(h *try)
		want gmx.Result
	}{
		"market order": {job: func(p *fixture) job.Job {
			return orderJob(p.order(perp.MarketIncrease, 0,
				2*cents))
		}, want: gmx.Executed},
		"limit order": {job: func(p *fixture) job.Job {
			return orderJob(p.order(perp.LimitIncrease, cents,
				2*cents))
		}, want: gmx.Executed},
		"unacceptable, market": {job: func(p *fixture) job.Job {
			return orderJob(p.order(perp.MarketIncrease, 0,
				cents-1))
		}, want: gmx.Cancelled},
		"unacceptable, waiting": {job: func(p *fixture) job.Job {
			return orderJob(p.order(perp.LimitIncrease, cents,
				cents-1))
		}, want: gmx.Frozen},
		"nothing to decrease": {job: func(p *fixture) job.Job { return orderJob(p.order(perp.MarketDecrease, 0, 0)) },
			want: gmx.Cancelled},
		"stop-loss": {
			job: func(p *fixture) job.Job {
				p.long(1000)
				return orderJob(p.order(perp.StopLossDecrease, cents, 0))
			},
			want: gmx.Executed,
		},
		"liquidation": {job: func(p *fixture) job.Job { return p.long(1000) },
			how: func(h *try) { h.index = cents * 9 / 10 }, want: gmx.Liquidated},
		"deposit":        {job: func(p *fixture) job.Job { return p.ask(perp.Deposit) }, want: gmx.Executed},
		"withdrawal":     {job: func(p *fixture) job.Job { return p.ask(perp.Withdrawal) }, want: gmx.Executed},
		"shift":          {job: func(p *fixture) job.Job { return p.ask(perp.Shift) }, want: gmx.Executed},
		"GLV deposit":    {job: func(p *fixture) job.Job { return p.ask(perp.GlvDeposit) }, want: gmx.Executed},
		"GLV withdrawal": {job: func(p *fixture) job.Job { return p.ask(perp.GlvWithdrawal) }, want: gmx.Executed},
		"GLV shift":      {job: func(p *fixture) job.Job { return p.ask(perp.GlvShift) }, want: gmx.Executed},
		"the last report a market order takes": {
			job: func(p *fixture) job.Job { return orderJob(p.order(perp.MarketIncrease, 0, 2*cents)) },
			how: func(h *try) { h.reported, h.block = second+300, second+600 }, want: gmx.Executed,
		},
		"an order that thawed": {
			job: func(p *fixture) job.Job {
				j := orderJob(p.order(perp.LimitIncrease, cents, cents-1))
				p.execute(j, usual())
				p.do(second, p.Update(j.Key, venue.Price(cents).Min, venue.Price(cents).Min))
				return j
			},
			want: gmx.Executed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, how := newFixture(t), usual()
			j := c.job(p)
			if c.how != nil {
				c.how(&how)
			}
			e := p.execute(j, how)
			if !e.OK {
				t.Fatal(gmx.DecodeRevert(e.Revert))
			}
			logs := venue.Logs(e.Events)
			outcome, err := gmx.NewDecoder(venue.EventEmitter).Outcome(logs, j.Key)
			if err != nil || outcome.Result != c.want {
				t.Errorf("the logs say %q, %v; want %q", outcome.Result, err, c.want)
			}
			if c.want == gmx.Frozen && outcome.Cause().Name != "OrderNotFulfillableAtAcceptablePrice" {
				t.Errorf("frozen because of %s", outcome.Cause())
			}
			mustSayTheSame(t, e, logs, how.block)
			if again := p.execute(j, how); again.OK {
				t.Error("it was executed twice")
			}
		})
	}
}

// mustSayTheSame demands that the logs say what the rows were changed by, as far as they are written.
func mustSayTheSame(t *testing.T, e venue.Effect, logs []chain.Log, sec uint64) {
	t.Helper()
	for i := range logs {
		logs[i].Block = sec
	}
	decoded, err := gmx.NewDecoder(venue.EventEmitter).Transaction(logs, sec*1000)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, d := range decoded {
		found[fmt.Sprintf("%+v", d)] = true
	}
	for _, event := range e.Events {
		switch event := event.(type) {
		case perp.PositionIncreased: // ends nothing
		case perp.PositionDecreased:
			// the fold's own
			event.Position.Status, event.Position.Changes, event.Position.IncreasedAtTime = "", 0, chain.Uint{}
			if !found[fmt.Sprintf("%+v", event)] {
				t.Errorf("no log says %+v, but %v", event, found)
			}
		default:
			if !found[fmt.Sprintf("%+v", event)] {
				t.Errorf("no log says %+v, but %v", event, found)
			}
		}
	}
}
