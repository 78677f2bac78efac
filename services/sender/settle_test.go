package sender

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/headtrack"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/txmanager"
	"perpkeeper/services/sender/turns"
)

// nowMs is the chain's time in these tests.
const nowMs = 1_700_000_000_000

var weth, usdc = chain.Address{1}, chain.Address{2}

func reportAt(token chain.Address, ms uint64) price.Report {
	return price.Report{Token: token, Provider: chain.Address{9}, Data: []byte{token[0]}, Min: perp.U64(1),
		Max: perp.U64(1), TimeMs: ms}
}

func quotesOf(reports ...price.Report) *quotes {
	q := newQuotes(time.Minute)
	for _, r := range reports {
		q.Add(r)
	}
	q.complete.Store(true)
	return q
}

func horizonAt(ms uint64, arrived time.Time) *headtrack.Tracker {
	h := headtrack.New(time.Now)
	h.Set(chain.BlockRef{Number: 100, Hash: chain.Hash{1}, TimeMs: ms}, arrived)
	return h
}

// standingAt is a state that has come up to a time of the chain; none at all for 0.
type standingAt uint64

func (at standingAt) Standing(context.Context) (pg.Standing, error) {
	var s pg.Standing
	if at > 0 {
		s.Watermark.BlockRef = chain.BlockRef{Number: 99, Hash: chain.Hash{2}, TimeMs: uint64(at)}
	}
	return s, nil
}

// away is a state that cannot be asked.
type away struct{}

func (away) Standing(context.Context) (pg.Standing, error) {
	return pg.Standing{}, errors.New("connection refused")
}

// generation is a state of another generation; 0 is one that is halted.
type generation struct {
	state interface {
		Standing(ctx context.Context) (pg.Standing, error)
	}
	number int
}

func (g generation) Standing(ctx context.Context) (pg.Standing, error) {
	s, err := g.state.Standing(ctx)
	s.Generation = g.number
	if g.number == 0 {
		s.Halted = "a final block is gone"
	}
	return s, err
}

// headsAt are endpoints that have named heads of these times.
func headsAt(times ...uint64) func() []evm.EndpointStatus {
	list := []evm.EndpointStatus{{Private: true, Head: chain.BlockRef{TimeMs: nowMs}}}
	for _, ms := range times {
		list = append(list, evm.EndpointStatus{Head: chain.BlockRef{TimeMs: ms}})
	}
	return func() []evm.EndpointStatus { return list }
}

// alone has every turn.
func alone() *turns.Tracker {
	return turns.New(turns.Config{Tier: tier.DefaultConfig(), Head: headtrack.New(time.Now), Clock: time.Now,
		Metrics: turns.NewMetrics(prometheus.NewRegistry()), Log: zerolog.Nop()})
}

// TIER-8: the gate opens when, and only when, this keeper sees what happens.
func TestSettle(t *testing.T) {
	fresh := func() settle {
		return settle{
			horizon: horizonAt(nowMs, time.Now()), quotes: quotesOf(reportAt(weth, nowMs), reportAt(usdc, nowMs)),
			state: standingAt(nowMs),
			turns: alone(), endpoints: func() []evm.EndpointStatus { return nil }, bounds: tier.DefaultBounds(),
			signer: anySigner(),
		}
	}
	for name, c := range map[string]struct {
		spoil func(*settle)
		want  txmanager.Decision
		why   string
	}{
		"all is well":  {func(*settle) {}, txmanager.Onward, ""},
		"no head ever": {func(s *settle) { s.horizon = headtrack.New(time.Now) }, txmanager.Closed, "no new block"},
		"heads have stopped": {func(s *settle) {
			s.horizon = horizonAt(nowMs, time.Now().
				Add(-4*time.Second))
		}, txmanager.Closed, "no new block for more than 3s"},
		"no state": {func(s *settle) { s.state = standingAt(0) }, txmanager.Closed, "no block yet"},
		"state behind": {func(s *settle) { s.state = standingAt(nowMs - 3001) }, txmanager.Closed,
			"behind the chain"},
		"state at the limit": {func(s *settle) { s.state = standingAt(nowMs - 3000) }, txmanager.Onward, ""},
		"state ahead":        {func(s *settle) { s.state = standingAt(nowMs + 500) }, txmanager.Onward, ""},
		"prices being read": {func(s *settle) { s.quotes.complete.Store(false) }, txmanager.Closed,
			"still being read"},
		"a price missing": {func(s *settle) { s.quotes = quotesOf(reportAt(weth, nowMs)) }, txmanager.Waiting,
			"no price report"},
		"a price stale": {func(s *settle) {
			s.quotes = quotesOf(reportAt(weth, nowMs),
				reportAt(usdc, nowMs-10_001))
		}, txmanager.Waiting, "more than 10s old"},
		"another token's report ahead": {func(s *settle) { s.quotes.Add(reportAt(chain.Address{77}, nowMs+59_000)) },
			txmanager.Onward, ""},
		"its own report ahead": {func(s *settle) { s.quotes.Add(reportAt(usdc, nowMs+3001)) }, txmanager.Waiting,
			"3s ahead"},
		"its own report a little so": {func(s *settle) { s.quotes.Add(reportAt(usdc, nowMs+3000)) }, txmanager.Onward,
			""},
		"the feed is silent": {func(s *settle) {
			s.quotes = quotesOf(reportAt(weth, nowMs-3001),
				reportAt(usdc, nowMs-3001))
		}, txmanager.Closed, "3s apart"},
		"the head is old": {func(s *settle) { s.horizon = horizonAt(nowMs-3001, time.Now()) }, txmanager.Closed,
			"3s apart"},
		"the feed is silent, and two endpoints agree": {func(s *settle) {
			s.quotes, s.endpoints = quotesOf(reportAt(weth, nowMs-9000), reportAt(usdc, nowMs-9000)),
				headsAt(nowMs, nowMs-450)
		}, txmanager.Onward, ""},
		"the feed is silent, and the other endpoint behind": {func(s *settle) {
			s.quotes, s.endpoints = quotesOf(reportAt(weth, nowMs-9000), reportAt(usdc, nowMs-9000)),
				headsAt(nowMs, nowMs-9000)
		}, txmanager.Closed, "3s apart"},
		"not compared": {func(s *settle) { s.signer.reconciled = func() bool { return false } }, txmanager.Closed,
			"nonces"},
		"another generation": {func(s *settle) { s.state = generation{s.state, 2} }, txmanager.Waiting, "generation 0"},
		"halted":             {func(s *settle) { s.state = generation{s.state, 0} }, txmanager.Closed, "halted"},
		"no means": {func(
			s *settle) {
			s.signer.held = func() string { return "the signer cannot pay for gas" }
		}, txmanager.Closed, "cannot pay"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh()
			c.spoil(&s)
			v, err := s.run(t.Context(),
				&txmanager.Task{Intent: txm.Intent{Job: job.Job{Tokens: []chain.Address{weth, usdc}}}})
			if err != nil || v.Kind != c.want || !strings.Contains(v.Reason, c.why) {
				t.Errorf("%+v, %v; want %d, %q", v, err, c.want, c.why)
			}
		})
	}
	s := fresh()
	s.state = away{}
	if _, err := s.run(t.Context(), &txmanager.Task{}); err == nil {
		t.Error("a database that cannot be asked must not look like an answer")
	}
}
