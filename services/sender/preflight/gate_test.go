package preflight

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txmanager"
)

// nowMs is the chain's time in these tests.
const nowMs = 1_700_000_000_000

var weth, usdc = chain.Address{1}, chain.Address{2}

func reportAt(token chain.Address, ms uint64) price.Report {
	return price.Report{Token: token, Provider: chain.Address{9}, Data: []byte{token[0]}, Min: chain.U64(1),
		Max: chain.U64(1), TimeMs: ms}
}

func quotesOf(reports ...price.Report) *Quotes {
	q := NewQuotes(time.Minute)
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

// progressAt is a state that has come up to a time of the chain; none at all for 0.
type progressAt uint64

func (at progressAt) Progress(context.Context) (pg.Progress, error) {
	var s pg.Progress
	if at > 0 {
		s.Watermark = chain.BlockRef{Number: 99, Hash: chain.Hash{2}, TimeMs: uint64(at)}
	}
	return s, nil
}

// away is a state that cannot be asked.
type away struct{}

func (away) Progress(context.Context) (pg.Progress, error) {
	return pg.Progress{}, errors.New("connection refused")
}

// generation is a state of another generation; 0 is one that is halted.
type generation struct {
	state interface {
		Progress(ctx context.Context) (pg.Progress, error)
	}
	number int
}

func (g generation) Progress(ctx context.Context) (pg.Progress, error) {
	s, err := g.state.Progress(ctx)
	s.Generation = g.number
	if g.number == 0 {
		s.Halted = "a final block is gone"
	}
	return s, err
}

// headsAt are endpoints, each at a host of its own, that have named heads of these times.
func headsAt(times ...uint64) func() []evm.EndpointStatus {
	list := []evm.EndpointStatus{{Private: true, Head: chain.BlockRef{TimeMs: nowMs}}}
	for i, ms := range times {
		list = append(list, evm.EndpointStatus{Host: string(rune('a' + i)), Head: chain.BlockRef{TimeMs: ms}})
	}
	return func() []evm.EndpointStatus { return list }
}

// twoDoors gives the first of the endpoints another address at its host.
func twoDoors(endpoints func() []evm.EndpointStatus) func() []evm.EndpointStatus {
	return func() []evm.EndpointStatus { return append(endpoints(), endpoints()[1]) }
}

// TIER-8: the gate opens when, and only when, this keeper sees what happens.
func TestGate(t *testing.T) {
	fresh := func() Gate {
		return Gate{
			Head: horizonAt(nowMs, time.Now()), Quotes: quotesOf(reportAt(weth, nowMs), reportAt(usdc, nowMs)),
			State:      progressAt(nowMs),
			EvidenceMs: func(headMs uint64) uint64 { return headMs },
			Endpoints:  func() []evm.EndpointStatus { return nil }, Bounds: tier.DefaultBounds(),
		}
	}
	for name, c := range map[string]struct {
		spoil func(*Gate)
		want  txmanager.Decision
		why   string
	}{
		"all is well":  {func(*Gate) {}, txmanager.Proceed, ""},
		"no head ever": {func(s *Gate) { s.Head = headtrack.New(time.Now) }, txmanager.PauseAll, "no new block"},
		"heads have stopped": {func(s *Gate) {
			s.Head = horizonAt(nowMs, time.Now().
				Add(-4*time.Second))
		}, txmanager.PauseAll, "no new block for more than 3s"},
		"no state": {func(s *Gate) { s.State = progressAt(0) }, txmanager.PauseAll, "no block yet"},
		"state behind": {func(s *Gate) { s.State = progressAt(nowMs - 3001) }, txmanager.PauseAll,
			"behind the chain"},
		"state at the limit": {func(s *Gate) { s.State = progressAt(nowMs - 3000) }, txmanager.Proceed, ""},
		"state ahead":        {func(s *Gate) { s.State = progressAt(nowMs + 500) }, txmanager.Proceed, ""},
		"prices being read": {func(s *Gate) { s.Quotes.complete.Store(false) }, txmanager.PauseAll,
			"still being read"},
		"a price missing": {func(s *Gate) { s.Quotes = quotesOf(reportAt(weth, nowMs)) }, txmanager.Retry,
			"no price report"},
		"a price stale": {func(s *Gate) {
			s.Quotes = quotesOf(reportAt(weth, nowMs),
				reportAt(usdc, nowMs-10_001))
		}, txmanager.Retry, "more than 10s old"},
		"another token's report ahead": {func(s *Gate) { s.Quotes.Add(reportAt(chain.Address{77}, nowMs+59_000)) },
			txmanager.Proceed, ""},
		"its own report ahead": {func(s *Gate) { s.Quotes.Add(reportAt(usdc, nowMs+3001)) }, txmanager.Retry,
			"3s ahead"},
		"its own report a little so": {func(s *Gate) { s.Quotes.Add(reportAt(usdc, nowMs+3000)) }, txmanager.Proceed,
			""},
		"the feed is silent": {func(s *Gate) {
			s.Quotes = quotesOf(reportAt(weth, nowMs-3001),
				reportAt(usdc, nowMs-3001))
		}, txmanager.PauseAll, "3s apart"},
		"the head is old": {func(s *Gate) { s.Head = horizonAt(nowMs-3001, time.Now()) }, txmanager.PauseAll,
			"3s apart"},
		"both doors of one host are ahead": {func(s *Gate) { s.Endpoints = twoDoors(headsAt(nowMs+600_000, nowMs)) },
			txmanager.Proceed, ""},
		"two hosts are ahead": {func(s *Gate) { s.Endpoints = headsAt(nowMs+600_000, nowMs+600_000, nowMs) },
			txmanager.PauseAll, "3s apart"},
		"the feed is silent, and two endpoints agree": {func(s *Gate) {
			s.Quotes, s.Endpoints = quotesOf(reportAt(weth, nowMs-9000), reportAt(usdc, nowMs-9000)),
				headsAt(nowMs, nowMs-450)
		}, txmanager.Proceed, ""},
		"the feed is silent, and the other endpoint behind": {func(s *Gate) {
			s.Quotes, s.Endpoints = quotesOf(reportAt(weth, nowMs-9000), reportAt(usdc, nowMs-9000)),
				headsAt(nowMs, nowMs-9000)
		}, txmanager.PauseAll, "3s apart"},
		"another generation": {func(s *Gate) { s.State = generation{s.State, 2} }, txmanager.Retry, "generation 0"},
		"halted":             {func(s *Gate) { s.State = generation{s.State, 0} }, txmanager.PauseAll, "halted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh()
			c.spoil(&s)
			v, err := s.ask(t.Context(), job.Job{Tokens: []chain.Address{weth, usdc}}, true)
			if err != nil || v.Kind != c.want || !strings.Contains(v.Reason, c.why) {
				t.Errorf("%+v, %v; want %d, %q", v, err, c.want, c.why)
			}
		})
	}
	s := fresh()
	s.State = away{}
	if _, err := s.ask(t.Context(), job.Job{}, true); err == nil {
		t.Error("a database that cannot be asked must not look like an answer")
	}
}

// openGate is one that holds nobody back who needs no price but that of ether.
func openGate() Gate {
	return Gate{
		Head: horizonAt(nowMs, time.Now()), Quotes: quotesOf(reportAt(weth, nowMs)), State: progressAt(nowMs),
		EvidenceMs: func(headMs uint64) uint64 { return headMs }, Bounds: tier.DefaultBounds(),
		Endpoints: func() []evm.EndpointStatus { return nil },
	}
}

// What holds one signer back closes the gate for its tasks.
func TestGateOfASigner(t *testing.T) {
	g := openGate()
	for why, c := range map[string]struct {
		held       string
		reconciled bool
		want       txmanager.Decision
	}{
		"":           {"", true, txmanager.Proceed},
		"cannot pay": {"the signer cannot pay for gas", true, txmanager.PauseAll},
		"nonces":     {"", false, txmanager.PauseAll},
	} {
		stage := g.Stage(func() string { return c.held }, func() bool { return c.reconciled })
		v, err := stage.Run(t.Context(), &txmanager.Task{})
		if err != nil || v.Kind != c.want || !strings.Contains(v.Reason, why) {
			t.Errorf("%+v, %v; want %d, %q", v, err, c.want, why)
		}
	}
	if err := g.Healthy(t.Context()); err != nil {
		t.Errorf("for others: %v", err)
	}
}

// TIER-8: what is signed anew for a nonce that a job has already passes the same gate as its first transaction; the
// nonce itself and the generation that the job was found in are not asked about again.
func TestRecheckAsksTheGate(t *testing.T) {
	ask := func(g Gate, j job.Job) (txmanager.Verdict, error) {
		task := &txmanager.Task{}
		task.Intent.Job, task.Intent.Job.ExpiresMs = j, 1 // what the look finds
		return (&Checker{Parts: Parts{Gate: g, Head: g.Head}}).Recheck(t.Context(), task)
	}
	open := openGate()
	behind, blind, halted := open, open, open
	behind.State, blind.State = progressAt(nowMs-60_000), away{}
	halted.State = generation{open.State, 0}
	for name, c := range map[string]struct {
		gate Gate
		job  job.Job
		kind txmanager.Decision
	}{
		"open":                   {open, job.Job{Tokens: []chain.Address{weth}}, txmanager.Drop},
		"found in another state": {open, job.Job{Evidence: job.Evidence{Generation: 7}}, txmanager.Drop},
		"the state is behind":    {behind, job.Job{}, txmanager.PauseAll},
		"the state is halted":    {halted, job.Job{}, txmanager.PauseAll},
		"a token has no report":  {open, job.Job{Tokens: []chain.Address{{77}}}, txmanager.Retry},
	} {
		if v, err := ask(c.gate, c.job); err != nil || v.Kind != c.kind {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	if _, err := ask(blind, job.Job{}); err == nil {
		t.Error("who cannot ask for the state has no error")
	}
}
