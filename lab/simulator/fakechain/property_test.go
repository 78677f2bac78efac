package fakechain_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/lab/simulator/fakechain"
	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/pkg/txmgr/txm"
)

// storm does at random what traders, keepers, miners and forks do.
type chainModel struct {
	*world
	rt   *rapid.T
	jobs []job.Job
	// seen is what every block ever shown had of the rows, by its hash.
	seen map[chain.Hash]map[chain.Hash]string
}

func (s *chainModel) anyJob() (j job.Job, some bool) {
	if len(s.jobs) == 0 {
		return j, false
	}
	return rapid.SampledFrom(s.jobs).Draw(s.rt, "job"), true
}

func (s *chainModel) trade() {
	account := chain.Address{rapid.Byte().Draw(s.rt, "trader"), 1} // nobody who has positions by orders
	m := s.venue.Markets()[0]
	switch rapid.IntRange(0, 3).Draw(s.rt, "trade") {
	case 0:
		s.jobs = append(s.jobs, orderJob(s.place()))
	case 1:
		key, act := s.venue.Ask(perp.Deposit, account, m.MarketToken)
		s.Do(act)
		s.jobs = append(s.jobs, job.Job{Kind: job.Deposit, Key: key})
	case 2:
		size := chain.U64(10_000).Mul(perp.One)
		p := perp.Position{
			Account: account, Market: m.MarketToken, CollateralToken: venue.Dollar, IsLong: true, SizeInUsd: size,
			SizeInTokens: size.Div(venue.Price(cents).Min), CollateralAmount: chain.Pow10(18),
		}
		key, act := s.venue.Open(p)
		s.Do(act)
		s.jobs = append(s.jobs, job.Job{Kind: job.Liquidation, Key: key, Account: account, Market: m.MarketToken,
			Collateral: venue.Dollar, IsLong: true})
	case 3:
		if j, some := s.anyJob(); some {
			s.Do(s.venue.Cancel(j.Key))
		}
	}
}

func (s *chainModel) keep() {
	by := rapid.SampledFrom([]fakechain.Signer{alice, bob}).Draw(s.rt, "keeper")
	j, some := s.anyJob()
	if !some {
		return
	}
	next := s.nonce(by, evm.Latest)
	tx := s.execution(j, next+rapid.Uint64Range(0, 2).Draw(s.rt, "ahead"))
	tx.Tip = rapid.Uint64Range(1, 20).Draw(s.rt, "price") * txm.Gwei / 10
	tx.Cap = tx.Tip
	_, _ = s.send(by, tx) // refused or not
}

func (s *chainModel) fork() {
	s.at = s.at.Add(blockTime)
	_ = s.Reorg(rapid.Uint64Range(1, 6).Draw(s.rt, "depth"), rapid.Bool().Draw(s.rt, "forgotten")) // too deep or not
	s.look()
}

func (s *chainModel) mine() {
	s.blocks(rapid.IntRange(1, 3).Draw(s.rt, "blocks"))
	s.look()
}

// look notes what the newest block shows.
func (s *chainModel) look() { s.seen[s.head().Hash] = s.rows(s.Derived()) }

// rows are those of all jobs in a state.
func (s *chainModel) rows(d *fakechain.Derived) map[chain.Hash]string {
	rows := map[chain.Hash]string{}
	for _, j := range s.jobs {
		o, err1 := d.Order(s.t.Context(), j.Key)
		p, err2 := d.Position(s.t.Context(), j.Key)
		r, err3 := d.Request(s.t.Context(), j.Key)
		if err1 != nil || err2 != nil || err3 != nil {
			s.rt.Fatal(err1, err2, err3)
		}
		if o.Known || p.Known || r.Known {
			rows[j.Key] = fmt.Sprintf("%+v %+v %+v", o.Row, p.Row, r.Row)
		}
	}
	return rows
}

// canonical lists what ended on the canonical branch.
func (s *chainModel) canonical() (all []execution.Execution) {
	for n := uint64(0); ; n++ {
		b, known := s.Block(n)
		if !known {
			return all
		}
		all = append(all, s.Ended(b.Hash)...)
	}
}

// Whatever happens: on the branch that stays every job ends once, positions once for each time they were opened; every
// look at the past, on whichever branch it stands, shows what was there; what a planner gathers from changes is what a
// first look shows; and each nonce is mined once.
func TestStorms(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &chainModel{world: newWorld(t), rt: rt, seen: map[chain.Hash]map[chain.Hash]string{}}
		s.HoldFinality(rapid.Bool().Draw(rt, "held"))
		slow := s.Chain.Endpoint()
		slow.SetFaults(fakechain.Faults{Lag: time.Duration(rapid.IntRange(0, 5).Draw(rt, "lag")) * blockTime})
		state, planner := slow.Derived(), &held{}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0, 1, 2:
				s.trade()
			case 3, 4, 5:
				s.keep()
			case 6:
				s.fork()
			default:
				s.mine()
			}
			if rapid.Bool().Draw(rt, "plans") {
				planner.take(rt, state, func() (pg.Changes, error) {
					return state.Changes(t.Context(), []int{0},
						planner.seen)
				})
				first, fresh := &held{}, slow.Derived()
				if !first.take(rt, fresh,
					func() (pg.Changes, error) { return fresh.Changes(t.Context(), []int{0}, pg.Seen{}) }) {
					rt.Fatal("a first look is no reload")
				}
				mustHold(rt, planner, first)
			}
			s.checkPast(slow, state)
		}
		s.checkOnce()
	})
}

func (s *chainModel) checkPast(slow *fakechain.Endpoint, state *fakechain.Derived) {
	head, err := slow.Head(s.t.Context())
	if err != nil {
		s.rt.Fatal(err)
	}
	was, looked := s.seen[head.Hash]
	if !looked {
		return
	}
	now := s.rows(state)
	for key, row := range was {
		if now[key] != row {
			s.rt.Fatalf("block %d once showed %s and now %s", head.Number, row, now[key])
		}
	}
	if len(now) != len(was) {
		s.rt.Fatalf("block %d once had %d rows and now %d", head.Number, len(was), len(now))
	}
}

func (s *chainModel) checkOnce() {
	final := map[chain.Hash]int{}
	for _, e := range s.canonical() {
		if e.Kind != job.Liquidation {
			final[e.Key]++
		}
	}
	for key, n := range final {
		if n > 1 {
			s.rt.Fatalf("%s ended %d times", key, n)
		}
	}
	nonces := map[string]bool{}
	for n := uint64(0); ; n++ {
		b, known := s.Block(n)
		if !known {
			break
		}
		liquidated := map[chain.Hash]bool{}
		for _, sent := range s.Sent(b.Hash) {
			place := fmt.Sprintf("%s %d", sent.Tx.From, sent.Tx.Nonce)
			if nonces[place] {
				s.rt.Fatalf("nonce %s was mined twice", place)
			}
			nonces[place] = true
			if sent.Kind == job.Liquidation && sent.Tx.OK {
				if liquidated[sent.Key] {
					s.rt.Fatalf("%s was liquidated twice in block %d", sent.Key, b.Number)
				}
				liquidated[sent.Key] = true
			}
		}
	}
}

// The same calls give the same chain, and within one moment their order does not matter.
func TestOrderWithinAMomentDoesNotMatter(t *testing.T) {
	run := func(shuffle *rand.Rand, sideBySide bool) (heads []chain.BlockRef, sent []fakechain.Sent) {
		w := newWorld(t)
		for range 10 {
			var keys []chain.Hash
			for range 4 {
				keys = append(keys, w.place())
			}
			w.blocks(1)
			var sends []func()
			for _, by := range []fakechain.Signer{alice, bob} {
				next := w.nonce(by, evm.Pending)
				for n, key := range keys {
					tx := w.execution(orderJob(key), next+uint64(n))
					tx.Tip *= uint64(1 + n%3)
					tx.Cap = tx.Tip
					sends = append(sends, func() { _, _ = w.send(by, tx) })
				}
			}
			shuffle.Shuffle(len(sends), func(i, j int) { sends[i], sends[j] = sends[j], sends[i] })
			var group sync.WaitGroup
			for _, send := range sends {
				if group.Go(send); !sideBySide {
					group.Wait()
				}
			}
			group.Wait()
			w.blocks(1)
			heads, sent = append(heads, w.head()), append(sent, w.Sent(w.head().Hash)...)
		}
		return heads, sent
	}
	heads, sent := run(rand.New(rand.NewPCG(1, 1)), false)
	for seed := range uint64(5) {
		h, s := run(rand.New(rand.NewPCG(seed, 2)), seed > 2)
		if fmt.Sprint(h, s) != fmt.Sprint(heads, sent) {
			t.Fatalf("another order, another chain (seed %d)", seed)
		}
	}
	if len(sent) < 40 {
		t.Errorf("%d transactions were mined: the test proves little", len(sent))
	}
}
