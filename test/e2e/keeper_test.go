// Package e2e proves the whole pipeline as an operator runs it: the real programs as processes, on an in-process chain, a Kafka broker and a
// real Postgres, killed, doubled, paused, reorganised and misconfigured.
//
// The main road runs with every `make test`. The longer scenarios need KEEPER_E2E=1 (`make e2e`). KAFKA_BROKERS puts them on a Kafka cluster
// that runs already (`make test-kafka`).
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/secret"
	"perpkeeper/services/demo"
	"perpkeeper/test/programs"
)

// patience bounds every wait. It is a guard against hanging, no statement about speed.
const patience = 2 * time.Minute

// long skips a scenario that is not part of the default run.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("KEEPER_E2E") == "" {
		t.Skip("set KEEPER_E2E=1, or run make e2e")
	}
}

func TestMain(m *testing.M) { pgtest.Main(m) }

// keeper is a running stack with what a test asks it.
type keeper struct {
	*demo.Stack
	t     *testing.T
	db    *pg.DB
	chain *rpc.Client
}

// start brings a stack up and waits until every process is ready. When the test fails, the ends of the logs are shown.
func start(t *testing.T, change func(*demo.Settings)) *keeper {
	t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	settings := demo.DefaultConfig().Demo
	settings.Binaries, settings.BlockTime, settings.Rate = folder, 300*time.Millisecond, 4
	if brokers := os.Getenv("KAFKA_BROKERS"); brokers != "" {
		settings.Brokers = strings.Split(brokers, ",")
		settings.ChainID = uint64(time.Now().UnixNano() % 1_000_000_007) // topics of its own on a shared cluster
	}
	if change != nil {
		change(&settings)
	}
	s := demo.New(settings, zerolog.New(zerolog.NewTestWriter(t)))
	k := &keeper{Stack: s, t: t}
	t.Cleanup(k.stop)
	if err := s.Start(context.Background(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL(s.Postgres)
	if k.db, err = pg.Open(t.Context(), cfg, "e2e"); err != nil {
		t.Fatal(err)
	}
	if k.chain, err = rpc.DialContext(t.Context(), s.Devnet.RPC); err != nil {
		t.Fatal(err)
	}
	k.awaitReady()
	return k
}

func (k *keeper) stop() {
	if k.t.Failed() {
		for _, p := range k.Processes {
			k.t.Logf("--- the end of %s's log:\n%s", p.Name, p.Tail(15))
		}
	}
	if k.db != nil {
		k.db.Close()
	}
	if k.chain != nil {
		k.chain.Close()
	}
	if err := k.Close(); err != nil {
		k.t.Errorf("stopping: %v", err)
	}
}

// await polls until a condition holds. The condition returns what is still missing.
func (k *keeper) await(what string, condition func(context.Context) error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var missing error
	for {
		if missing = condition(ctx); missing == nil {
			return
		}
		select {
		case err := <-k.Failed():
			k.t.Fatalf("%s: a process failed: %v", what, err)
		case <-ctx.Done():
			k.t.Fatalf("%s: still %v after %s", what, missing, patience)
		case <-tick.C:
		}
	}
}

func (k *keeper) awaitReady() {
	k.t.Helper()
	k.await("every process ready", func(ctx context.Context) error {
		for _, p := range k.Look(ctx, k.db, time.Now()).Processes {
			if p.Health != "ready" {
				return fmt.Errorf("%s %s", p.Name, p.Health)
			}
		}
		return nil
	})
}

// awaitShared waits until every copy of a service has partitions of its own.
func (k *keeper) awaitShared(kind string) {
	k.t.Helper()
	k.await("every copy of "+kind+" has a share", func(ctx context.Context) error {
		for _, p := range k.Processes {
			if strings.HasPrefix(p.Name, kind+"-") && p.Metrics(ctx)["bus_group_partitions"] == 0 {
				return fmt.Errorf("%s has none", p.Name)
			}
		}
		return nil
	})
}

// progress waits until so many more orders have been executed and positions liquidated than at the call.
func (k *keeper) progress(orders, liquidations int) {
	k.t.Helper()
	before, err := k.db.Overview(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	k.await(fmt.Sprintf("%d more orders and %d more liquidations", orders, liquidations), func(ctx context.Context) error {
		now, err := k.db.Overview(ctx)
		if err != nil {
			return err
		}
		o, l := now.Orders["Executed"]-before.Orders["Executed"], now.Liquidations["Executed"]-before.Liquidations["Executed"]
		if o < orders || l < liquidations {
			return fmt.Errorf("%d and %d", o, l)
		}
		return nil
	})
}

// devnet tells the devnet something.
func (k *keeper) devnet(method string, argument ...any) {
	k.t.Helper()
	if err := k.chain.CallContext(k.t.Context(), nil, method, argument...); err != nil {
		k.t.Fatalf("%s: %v", method, err)
	}
}

// settle ends trading and waits until nothing is left to do: no order or request waits that a keeper could execute, no job is live, and
// the tables stand at the chain's head.
func (k *keeper) settle() {
	k.t.Helper()
	k.devnet("devnet_trade", map[string]any{"on": false})
	k.await("nothing left to do", func(ctx context.Context) error {
		sight := k.Look(ctx, k.db, time.Now())
		if sight.Trouble != "" {
			return errors.New(sight.Trouble)
		}
		if sight.LiveJobs > 0 {
			return fmt.Errorf("%d jobs live", sight.LiveJobs)
		}
		if !sight.Overview.Level() || sight.Head > sight.Overview.Watermark.Number+2 {
			return fmt.Errorf("head %d, applied %d", sight.Head, sight.Overview.Watermark.Number)
		}
		return nil
	})
}
