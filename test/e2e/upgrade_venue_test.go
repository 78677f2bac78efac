package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier/execution/ledger"
	"perpkeeper/test/rig"
)

const (
	// seen is how long a change of the venue's roles may take to be taken into account: a look a minute, at a final
	// block, on a machine that runs everything at once.
	seen = 75 * time.Second
	// oldest is the most that a request may wait while the venue is upgraded: well below a window, after which another
	// tier would execute it.
	oldest = 15 * time.Second
	// unknown is an event that no build knows.
	unknown = "WorkflowExecuted"
)

// TestVenueUpgrade: the venue puts handlers of v2.2c beside those of v2.2b under three running keepers, and then takes
// their roles from the old ones, while traders go on. The Master goes over to the new handlers without a restart,
// misses nothing and sends nothing twice (PIPE-11); a role that is taken from one of its signers is told within a
// minute, others do its jobs, and it goes on by itself when it has the role again. In the end every keeper's state is
// the chain's. Before that the venue emits an event that no keeper knows: each counts it and goes on (PIPE-12). That
// alarms are delivered is the engine test's leg monitoring.
//
// It takes four minutes and runs with KEEPER_UPGRADE_VENUE=1 (`make upgrade-venue`).
func TestVenueUpgrade(t *testing.T) {
	if os.Getenv("KEEPER_UPGRADE_VENUE") == "" {
		t.Skip("set KEEPER_UPGRADE_VENUE=1, or run make upgrade-venue")
	}
	k := startAdapted(t, func(s *demo.Settings) { s.Keepers, s.Rate, s.BlockTime = 3, 2, 450*time.Millisecond },
		func(s *demo.Stack) { s.Chain = map[string]string{"CONTRACTS": "v2.2b"} })
	k.awaitAll()
	k.progress(10, 1)
	from := uint64(k.head()) + 1
	k.announce()
	var after struct{ Contracts map[string]chain.Address }
	upgrade := map[string]any{"contracts": "v2.2c"}
	if err := k.chain.CallContext(t.Context(), &after, "devnet_upgrade", upgrade); err != nil {
		t.Fatal(err)
	}
	began, handler := time.Now(), after.Contracts["orderHandler"]
	k.await("an order executed by the new handler", func(ctx context.Context) error {
		if err := k.canonical.ToHead(ctx); err != nil {
			return err
		}
		for _, tx := range k.canonical.Sent(from) {
			if tx.To == handler && tx.Kind == job.Order && tx.OK {
				return nil
			}
		}
		return fmt.Errorf("none to %s", handler)
	})
	if took := time.Since(began); took > seen {
		k.errorf("the new handler was taken into use after %s", took)
	}
	k.devnet("devnet_retire")
	k.progress(10, 1)
	to := uint64(k.head())

	k.takeRole()
	k.progress(10, 1)
	k.finish()
	k.judge(from, to)
	for _, other := range k.Keepers {
		k.sameState(other)
		for _, p := range other.Processes {
			if n := p.Restarts(); n > 0 {
				k.errorf("%s's %s was started again %d times", other.Role(), p.Name, n)
			}
		}
	}
}

// judge holds what the chain says of the time from a block on against what may be: while the venue was upgraded, until
// another block, the Master executed everything, and soon; then whoever had the role; nothing was left or done twice.
func (k *keeper) judge(from, to uint64) {
	k.t.Helper()
	node, err := k.Node(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	defer node.Close()
	// up to the block at which nothing was left to do: what was asked for since is not late
	all, err := k.Audit(k.t.Context(), node, from, k.canonical.Next()-1)
	if err != nil {
		k.t.Fatal(err)
	}
	var upgraded []ledger.Row
	for _, r := range all {
		if r.Winner != nil && r.Winner.Block <= to {
			upgraded = append(upgraded, r)
		}
	}
	if err := (demo.Expectation{By: []int{1}, Oldest: oldest}).Check(upgraded); err != nil {
		k.errorf("while the venue was upgraded: %v", err)
	}
	if err := (demo.Expectation{By: []int{1, 2, 3}}).Check(all); err != nil {
		k.errorf("from the upgrade on: %v", err)
	}
	k.t.Logf("%d jobs while the venue was upgraded, %d in all", len(upgraded), len(all))
}

// announce has the venue emit an event that no keeper knows, and waits until each has counted it. That they go on shows
// in what is executed afterwards, without a restart, and in their tables at the end.
func (k *keeper) announce() {
	k.t.Helper()
	const counted = `statevm_events_total{event="unknown ` + unknown + `"} 1`
	k.devnet("devnet_announce", map[string]any{"name": unknown})
	began := time.Now()
	for _, other := range k.Keepers {
		k.await(other.Role()+" counts an unknown event", func(context.Context) error {
			answer, err := http.Get("http://" + other.Process("statevm").HTTP + "/metrics")
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), counted) {
				return errors.Join(err, fmt.Errorf("%s is not among its metrics", counted))
			}
			return nil
		})
	}
	k.t.Logf("all keepers have counted the unknown event after %s", time.Since(began).Round(time.Millisecond))
}

func (k *keeper) awaitAll() {
	k.t.Helper()
	k.await("every process of all keepers ready", func(ctx context.Context) error {
		for _, other := range k.Keepers {
			if err := other.Ready(ctx); err != nil {
				return fmt.Errorf("%s: %w", other.Role(), err)
			}
		}
		return nil
	})
}

// takeRole takes a role from the Master's first signer and gives it back.
func (k *keeper) takeRole() {
	k.t.Helper()
	role := func(holds bool) {
		k.t.Helper()
		for _, a := range k.Devnet.Accounts {
			if a.Purpose == "keeper" {
				k.devnet("devnet_role", map[string]any{"account": a.Address, "role": "ORDER_KEEPER", "holds": holds})
				return
			}
		}
	}
	told := func(ctx context.Context) error { return k.Keepers[0].Ready(ctx) }
	timed := func(what string, condition func(context.Context) error) {
		k.t.Helper()
		began := time.Now()
		k.await(what, condition)
		if took := time.Since(began); took > seen {
			k.errorf("%s: after %s", what, took)
		}
	}
	role(false)
	timed("the Master says that its signer lacks a role", func(ctx context.Context) error {
		if err := told(ctx); err == nil || !strings.Contains(err.Error(), "does not hold the role ORDER_KEEPER") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	k.progress(5, 0) // by the others, or by its other signer
	role(true)
	timed("the Master goes on by itself", told)
}

// sameState waits until a keeper's tables are those of a fold of the canonical chain.
func (k *keeper) sameState(other *demo.Keeper) {
	k.t.Helper()
	db := rig.Postgres(k.t, other.Postgres)
	k.await(other.Role()+"'s tables equal to a fold of the canonical chain",
		func(ctx context.Context) error { return k.canonical.Equals(ctx, db, 0) })
}
