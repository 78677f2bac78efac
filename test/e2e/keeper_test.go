package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/rs/zerolog"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/canon"
	"perpkeeper/test/programs"
	"perpkeeper/test/rig"
)

// patience bounds every wait. It is a guard against hanging, no statement about speed.
const patience = 4 * time.Minute

// silence is how long a wait stays silent: from then on it logs what it still misses, whenever that changes.
const silence = 45 * time.Second

// long skips a scenario that is not part of the default run.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("KEEPER_E2E") == "" {
		t.Skip("set KEEPER_E2E=1, or run make e2e")
	}
}

func TestMain(m *testing.M) { pgtest.Main(m) }

// keeper is a running stack of one keeper, with what a test asks it.
type keeper struct {
	*demo.Stack
	*demo.Keeper
	t     *testing.T
	db    *pg.DB
	chain *rpc.Client
	// reasons are why the test fails; they come again below the processes' logs.
	reasons   []string
	canonical *canon.Chain
}

// start brings a stack up and waits until every process is ready. When the test fails, the ends of the logs are shown.
func start(t *testing.T, change func(*demo.Settings)) *keeper {
	t.Helper()
	return startAdapted(t, change, func(*demo.Stack) {})
}

// startAdapted is start with a further configuration of keepers, which adapt sets.
func startAdapted(t *testing.T, change func(*demo.Settings), adapt func(*demo.Stack)) *keeper {
	t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	settings := demo.DefaultConfig().Demo
	settings.Binaries, settings.Keepers, settings.BlockTime, settings.Rate = folder, 1, 300*time.Millisecond, 4
	if brokers := os.Getenv("KAFKA_BROKERS"); brokers != "" {
		settings.Brokers = strings.Split(brokers, ",")
		settings.ChainID = uint64(time.Now().UnixNano() % 1_000_000_007) // topics of its own on a shared cluster
	}
	if change != nil {
		change(&settings)
	}
	s := demo.New(settings, zerolog.New(zerolog.NewTestWriter(t)))
	adapt(s)
	k := &keeper{Stack: s, Keeper: s.Keepers[0], t: t}
	t.Cleanup(k.stop)
	if err := s.Start(context.Background(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	k.db = rig.Postgres(t, k.Postgres)
	if k.chain, err = rpc.DialContext(t.Context(), s.Devnet.RPC); err != nil {
		t.Fatal(err)
	}
	if k.canonical, err = canon.OfDemo(t.Context(), s.Devnet); err != nil {
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
		status, err := k.Keeperctl(context.Background(), "status")
		k.t.Logf("--- keeperctl status (%v):\n%s", err, status)
		k.t.Logf("--- failed at block %d: %s", k.head(), strings.Join(k.reasons, "; "))
	}
	if k.chain != nil {
		k.chain.Close()
	}
	if k.canonical != nil {
		k.canonical.Close()
	}
	if err := k.Close(); err != nil {
		k.t.Errorf("stopping: %v", err)
	}
}

// await polls until a condition holds. The condition returns what is still missing.
func (k *keeper) await(what string, condition func(context.Context) error) {
	k.t.Helper()
	hung := time.NewTimer(patience)
	defer hung.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	began, last := time.Now(), ""
	for {
		missing := condition(k.t.Context())
		if missing == nil {
			return
		}
		if now := missing.Error(); now != last && time.Since(began) > silence {
			k.t.Logf("%s after %s: %s", what, time.Since(began).Round(time.Second), now)
			last = now
		}
		select {
		case err := <-k.Failed():
			k.failf("%s: a process failed: %v", what, err)
		case <-hung.C:
			k.failf("%s: still %v after %s", what, missing, patience)
		case <-tick.C:
		}
	}
}

// failf ends the test, and keeps the reason for the end of what it prints.
func (k *keeper) failf(format string, values ...any) {
	k.t.Helper()
	k.errorf(format, values...)
	k.t.FailNow()
}

// errorf fails the test, which goes on, and keeps the reason for the end of what it prints.
func (k *keeper) errorf(format string, values ...any) {
	k.t.Helper()
	k.reasons = append(k.reasons, fmt.Sprintf(format, values...))
	k.t.Error(k.reasons[len(k.reasons)-1])
}

// head is the number of the chain's head, 0 where it cannot be asked any more.
func (k *keeper) head() (number hexutil.Uint64) {
	if k.chain != nil {
		_ = k.chain.CallContext(context.Background(), &number, "eth_blockNumber")
	}
	return number
}

func (k *keeper) awaitReady() {
	k.t.Helper()
	k.await("every process ready", k.Ready)
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
	var before demo.Counts
	k.await("a first look", func(ctx context.Context) (err error) {
		before, err = demo.Count(ctx, k.db)
		return err
	})
	k.await(fmt.Sprintf("%d more orders and %d more liquidations", orders, liquidations),
		func(ctx context.Context) error {
			now, err := demo.Count(ctx, k.db)
			if err != nil {
				return err
			}
			o, l := now.Of["order Executed"]-before.Of["order Executed"],
				now.Of["liquidation Executed"]-before.Of["liquidation Executed"]
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
		k.failf("%s: %v", method, err)
	}
}

// finish ends trading, holds prices still and waits until nothing is left to do: every market order and request is
// done, no job is live in any planner, and the tables equal a fold of the canonical chain. Then it checks that nothing
// was sent twice.
func (k *keeper) finish() {
	k.t.Helper()
	k.devnet("devnet_trade", map[string]any{"on": false})
	if err := k.canonical.HoldPrices(k.t.Context(), k.Devnet); err != nil {
		k.failf("holding the prices: %v", err)
	}
	k.await("nothing left to do, and tables equal to a fold of the canonical chain",
		func(ctx context.Context) error {
			if err := k.idle(ctx); err != nil {
				return err
			}
			if err := k.canonical.Equals(ctx, k.db, 0); err != nil {
				return err
			}
			return k.canonical.Unfinished(0, k.canonical.Next())
		})
	if err := k.canonical.Twice(); err != nil {
		k.errorf("%v", err)
	}
	k.t.Logf("%d transactions sent", len(k.canonical.Sent(0)))
}

// idle says what keeps a process from being ready, or which planner has live jobs.
func (k *keeper) idle(ctx context.Context) error {
	if err := k.Ready(ctx); err != nil {
		return err
	}
	for _, p := range k.Processes {
		if !strings.HasPrefix(p.Name, "planner") {
			continue
		}
		gauges := p.Metrics(ctx)
		if gauges == nil {
			return fmt.Errorf("%s does not show its metrics", p.Name)
		}
		if live := gauges["planner_jobs_live"]; live > 0 {
			return fmt.Errorf("%s has %.0f live jobs", p.Name, live)
		}
	}
	return nil
}

// explain asks why open positions are not liquidated, as an operator would.
func (k *keeper) explain() {
	k.t.Helper()
	var open []perp.Position
	k.await("open positions on a level state", func(ctx context.Context) error {
		s, err := pgtest.Load(ctx, k.db, 0, 1, 2, 3)
		if open = s.Positions; err == nil && len(open) == 0 {
			return fmt.Errorf("none (level %v)", s.Level())
		}
		return err
	})
	k.await("an explanation", func(ctx context.Context) error { // the state may stand apart at the moment of asking
		out, err := k.Keeperctl(ctx, "why-not", open[0].PositionKey.Hex())
		if err != nil || !strings.Contains(out, "position of "+open[0].Account.Hex()) ||
			!strings.Contains(out, "due ") {
			return fmt.Errorf("%q, %w", out, err)
		}
		k.t.Logf("keeperctl why-not says:\n%s", out)
		return nil
	})
	if out, err := k.Keeperctl(k.t.Context(), "why-not", "0x12"); err == nil || strings.Count(out, "\n") > 0 {
		k.errorf("a key that is none: %q, %v", out, err)
	}
}
