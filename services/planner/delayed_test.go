package planner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/embedded/broker"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/wire"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A delayed job does not wait for a planning loop that is busy, or not there yet, for longer than its transaction may
// be idle.
func TestHandOutDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if due, err := handOut(make(chan rearm))(t.Context(), job.Job{}); due || err == nil ||
			err.Error() != "the planning loop is busy" {
			t.Errorf("due %t, %v", due, err)
		}
		if took := time.Since(begun); took != loopPatience {
			t.Errorf("it took %s", took)
		}
		loop := make(chan rearm)
		var planner sync.WaitGroup
		planner.Go(func() {
			r := <-loop
			r.reply <- rearmed{due: true, err: errors.New(r.job.ID)}
		})
		if due, err := handOut(loop)(t.Context(), job.Job{ID: "x"}); !due || err == nil || err.Error() != "x" {
			t.Errorf("due %t, %v", due, err)
		}
		planner.Wait()
	})
}

// DLY-10: a cooled-down job goes out again as the planner knows it now, and not at all when it is no longer due.
func TestRearmSaysWhatIsLive(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Keeper.ChainID, cfg.Keeper.JobPartitions = 56, 2
	client := jobTopic(t, cfg.Keeper)
	p := New(cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), client, nil)
	p.jobsReady = &service.Condition{}
	market := chain.Address{1}
	evidence := job.Evidence{Block: chain.BlockRef{Number: 9, Hash: chain.Hash{9}}}
	now := job.Job{ID: "j", Kind: job.Order, Market: market, Signer: chain.Address{7}, Evidence: evidence}
	p.live.update(market, []job.Job{now})

	ask := func(id string) rearmed {
		t.Helper()
		reply := make(chan rearmed, 1)
		stale := job.Job{ID: id, Kind: job.Order, Market: market, Signer: chain.Address{7}}
		if err := p.rearm(t.Context(), rearm{stale, reply}); err != nil {
			t.Fatal(err)
		}
		return <-reply
	}
	if r := ask("gone"); r.due || r.err != nil {
		t.Errorf("a job that is not live: %+v", r)
	}
	if r := ask("j"); !r.due || r.err != nil {
		t.Errorf("a job that is live: %+v", r)
	}
	said, err := client.Reader(wire.JobTopic(56), wire.SignerPartition(now.Signer, 2), 0).NextBatch(t.Context(), 10)
	if err != nil || len(said) != 1 {
		t.Fatalf("said %d records, %v", len(said), err)
	}
	m, _, err := wire.Decode(said[0])
	if j, ok := m.(wire.Job); err != nil || !ok || j.Job.ID != "j" || j.Job.Evidence.Block.Number != 9 {
		t.Errorf("said %+v, %v", m, err)
	}
}

// jobTopic is a client of a broker that has the topic of jobs.
func jobTopic(t *testing.T, keeper wire.Config) *bus.Client {
	t.Helper()
	b, err := broker.Start(broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cfg := bus.DefaultConfig()
	cfg.Brokers = []string{b.Addr()}
	client, err := bus.New(cfg, zerolog.Nop(), bus.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.Ensure(t.Context(), bus.Specs(keeper.Named(wire.JobTopic(keeper.ChainID))...)); err != nil {
		t.Fatal(err)
	}
	return client
}

// DLY-2, DLY-10: a planner's scanner books fees and releases them, asks for the day's report, and notices what expires,
// with every kind at hand.
func TestScannerOfAPlanner(t *testing.T) {
	db := pgtest.DB(t)
	signer := chain.Address{0xa}
	applyOneBlock(t, db, signer)
	cfg := DefaultConfig()
	cfg.Commission = delayed.CommissionConfig{Agents: []delayed.Agent{{Agent: "ann", Signers: []chain.Address{signer}}}}
	var text strings.Builder
	s := newDelayed(cfg, "test", delayed.NewMetrics(prometheus.NewRegistry()), zerolog.New(&text), db,
		func(context.Context, job.Job) (bool, error) { return true, nil })
	for range 2 { // what a source added may fall due after the scan began
		if _, err := s.Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wallets, err := db.Wallets().List(t.Context())
	if err != nil || len(wallets) != 1 || wallets[0].Agent != "ann" || wallets[0].Balance != perp.U64(120) ||
		!wallets[0].Frozen.IsZero() {
		t.Errorf("wallets %+v, %v", wallets, err)
	}
	status := map[string]delayed.Status{}
	jobs, err := db.Delayed().List(t.Context(), "", "", 10)
	for _, j := range jobs {
		status[j.Kind] = j.Status
	}
	if err != nil || len(jobs) != 3 || status[delayed.CommissionRelease] != delayed.Done ||
		status[delayed.Expiry] != delayed.Done ||
		status[delayed.DailyReport] != delayed.Pending {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
	if !strings.Contains(text.String(), "expired without having been executed") {
		t.Errorf("logged %s", text.String())
	}
}

// applyOneBlock applies a final block with one fee for the signer and a deposit that nobody executed.
func applyOneBlock(t *testing.T, db *pg.DB, signer chain.Address) {
	t.Helper()
	p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	block := chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}, TimeMs: 1}
	tx := chain.Tx{Hash: chain.Hash{1}, Block: block.Number, BlockHash: block.Hash}
	changes := []pg.Change{
		{After: perp.Transaction{Tx: tx}},
		{After: perp.KeeperFee{Keeper: signer, Amount: perp.U64(120),
			Stamp: perp.Stamp{Block: block.Number, Log: 3, TxHash: tx.Hash}}},
		{After: perp.Request{Kind: perp.Deposit, Key: chain.Hash{5}, Account: chain.Address{5},
			UpdatedAtTime: perp.U64(1), Status: perp.Created}},
	}
	applied := pg.AppliedBlock{Block: pg.Block{BlockRef: block, Verified: true}, Changes: changes}
	if err := p.Commit(t.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{applied},
		Finalized: block}); err != nil {
		t.Fatal(err)
	}
}
