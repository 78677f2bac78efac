package planner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/service"
	"perpkeeper/test/rig"
)

// Defects of published keepers, each as a test that this one does not have it.

// A position that gaps past its trigger is filed as "far" and looked at again after hours. Here the next tick finds it,
// however far it gapped.
func TestDefectGapPastTheTrigger(t *testing.T) {
	d := newFixture()
	d.report(eth, dollarsPerEther(5000), nowMs+100)
	d.load(long(alice, 1000))
	if got := d.jobs(t); len(got) != 0 {
		t.Fatalf("healthy, but found %v", ids(got))
	}
	d.report(eth, dollarsPerEther(3000), nowMs+200)
	tokens, _ := d.quotes.take()
	fresh, err := d.look(d.book.reached(tokens), d.moment())
	if err != nil || len(fresh) != 1 {
		t.Errorf("after a gap of 40 %%: %v, %v", ids(fresh), err)
	}
}

// Milliseconds are compared with a setting in seconds, so that nothing is ever fresh, or everything. Here a report is
// judged with until it has the age of the setting by the state's own time, and not after.
func TestDefectMillisecondsAgainstSeconds(t *testing.T) {
	cfg := DefaultConfig()
	for age, fresh := range map[time.Duration]bool{0: true, 29 * time.Second: true, 30 * time.Second: true,
		31 * time.Second: false, 5 * time.Hour: false} {
		p := New(cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), testClient(t, "127.0.0.1:1"), nil)
		p.book.block = chain.BlockRef{Number: 1, Hash: chain.Hash{1}, TimeMs: nowMs}
		p.book.byToken[eth] = []chain.Address{ethMarket.MarketToken}
		d := fixture{quotes: p.quotes}
		d.report(eth, dollarsPerEther(4500), nowMs-uint64(age.Milliseconds()))
		if _, judged := p.moment().Quotes[eth]; judged != fresh {
			t.Errorf("a report of age %s is judged with: %v", age, judged)
		}
	}
}

// A check that throws leaves a lock held, and nothing is checked any more. Here a position that cannot be judged is
// named, and the others are found, at this tick and the next.
func TestDefectACheckThatFails(t *testing.T) {
	d := newFixture()
	broken := long(bob, 900)
	broken.SizeInTokens = chain.Uint{} // the contract would divide by it
	d.load(broken, long(alice, 1050))
	for range 2 {
		if _, err := d.look(d.everywhere(), d.moment()); err == nil || !errors.Is(err, chain.ErrArithmetic) {
			t.Errorf("the position that cannot be judged is not named: %v", err)
		}
		if all := d.live.all(); len(all) != 1 || all[0].Account != alice {
			t.Errorf("found %v", ids(all))
		}
	}
}

// Candidates are lost on a channel nobody listens to. Here what could not be published is published by the next pass,
// all of it.
func TestDefectNobodyListens(t *testing.T) {
	p, client := brokered(t)
	keeper := p.cfg.Keeper
	topic := wire.JobTopic(keeper.ChainID)
	working := p.publish
	p.publish = newPublisher(testClient(t, "127.0.0.1:1"), keeper).publish
	first, _ := p.live.update(chain.Address{1}, []job.Job{{ID: "a", Kind: job.Order, Signer: chain.Address{9}}})
	brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := p.announce(brief, first, true); err == nil {
		t.Fatal("published to nobody")
	}
	p.publish = working
	if err := p.announce(t.Context(), nil, true); err != nil {
		t.Fatal(err)
	}
	partition := wire.SignerPartition(chain.Address{9}, keeper.JobPartitions)
	r, err := client.Reader(topic, partition, 0).Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if m, _, err := wire.Decode(r); err != nil || m.(wire.Job).ID != "a" {
		t.Errorf("%v, %v", m, err)
	}
}

// After a crash of the markets there is more to say than a broker takes at once. It is said in parts; a planner that
// tried it all at once would be refused for ever, and with it every job.
func TestMoreJobsThanOneBatchHolds(t *testing.T) {
	p, client := brokered(t)
	signer := chain.Address{9}
	jobs := make([]job.Job, 12_000)
	for i := range jobs {
		jobs[i] = job.Job{
			ID: job.LiquidationID(chain.Hash{byte(i), byte(i >> 8)}, 1), Kind: job.Liquidation, Signer: signer,
			Class: job.ClassLiquidation,
			Ratio: chain.U64(uint64(i)), Tokens: []chain.Address{eth, usdc},
			Evidence: job.Evidence{Reason: strings.Repeat("x", 800)},
		}
	}
	fresh, _ := p.live.update(chain.Address{1}, jobs)
	if err := p.announce(t.Context(), fresh, true); err != nil {
		t.Fatal(err)
	}
	r := client.Reader(wire.JobTopic(p.cfg.Keeper.ChainID), wire.SignerPartition(signer, p.cfg.Keeper.JobPartitions), 0)
	for i := range jobs {
		record, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m, _, err := wire.Decode(record); err != nil || m.(wire.Job).ID != jobs[i].ID {
			t.Fatalf("the %d-th is %v, %v", i, m, err)
		}
	}
}

// brokered is a planner with a broker that has all topics.
func brokered(t testing.TB) (*Planner, *bus.Client) {
	t.Helper()
	cfg := DefaultConfig()
	client := testClient(t, rig.Broker(t).Addr())
	rig.Ensure(t, client, cfg.Keeper.Topics()...)
	p := New(cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), client, nil)
	p.stateReady, p.jobsReady = new(service.Condition), new(service.Condition)
	return p, client
}

func testClient(t testing.TB, address string) *bus.Client {
	t.Helper()
	cfg := bus.DefaultConfig()
	cfg.Brokers = []string{address}
	return rig.Kafka(t, cfg)
}

// Two executions in one block leave a node stuck on the second. Here both end their jobs, and a third goes on.
func TestDefectTwoExecutionsInOneBlock(t *testing.T) {
	d := newFixture()
	first, second, third := long(alice, 1050), long(bob, 1010), order(perp.MarketIncrease, 0)
	d.load(first, second, third)
	if len(d.jobs(t)) != 3 {
		t.Fatal("not found")
	}
	d.book.apply(pg.Changes{
		Progress: pg.Progress{Generation: 1,
			Watermark: chain.BlockRef{Number: 8, Hash: chain.Hash{8}, TimeMs: nowMs + 450}},
		Positions: pg.Delta[perp.Position]{Removed: []chain.Hash{first.PositionKey, second.PositionKey}},
	})
	if left := d.jobs(t); !slices.Equal(ids(left), []string{job.OrderID(third.Key, 1)}) {
		t.Errorf("due after the block: %v", ids(left))
	}
}

// A halted state decides nothing: also at the next tick of a price.
func TestHaltedStateDecidesNothing(t *testing.T) {
	store := &told{}
	p := New(DefaultConfig(), zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), testClient(t, "127.0.0.1:1"), store)
	p.stateReady, p.jobsReady = new(service.Condition), new(service.Condition)
	p.book.block = chain.BlockRef{Number: 1, Hash: chain.Hash{1}, TimeMs: nowMs}
	p.book.shard(0).put(long(alice, 1))
	store.Halted = "final block 5 has gone"
	if err := p.reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !p.book.block.Hash.IsZero() || len(p.book.shards) != 0 {
		t.Error("the planner goes on deciding by the state of before")
	}
}

// told is a state that says always the same.
type told struct{ pg.Progress }

func (s *told) Changes(context.Context, []int, pg.Seen) (pg.Changes, error) {
	return pg.Changes{Progress: s.Progress}, nil
}

func (s *told) Load(context.Context, []int, func(int, perp.Row) error) (pg.Changes, error) {
	return pg.Changes{Progress: s.Progress}, nil
}

func (s *told) Parameters(context.Context, []chain.Hash) ([]perp.Parameter, error) { return nil, nil }

func (s *told) MostProfitable(context.Context, pg.Gainers) ([]perp.Position, error) { return nil, nil }
