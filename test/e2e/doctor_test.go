package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/test/rig"
)

// doctor asks keeperctl whether the keeper is well, and returns the checks that found something, and all it said.
func (k *keeper) doctor(ctx context.Context, more ...string) (checks []string, said string) {
	k.t.Helper()
	var pages []string
	for _, p := range k.Processes {
		pages = append(pages, p.Name+"=http://"+p.HTTP)
	}
	said, err := k.Keeperctl(ctx, append([]string{"doctor", "--output=json", "--keeperctl.processes=" +
		strings.Join(pages, ",")}, more...)...)
	var told struct{ Findings []struct{ Check string } }
	if decoded := json.NewDecoder(strings.NewReader(said)).Decode(&told); decoded != nil {
		k.t.Fatalf("doctor: %v, %v: %s", err, decoded, said)
	}
	for _, f := range told.Findings {
		checks = append(checks, f.Check)
	}
	if exit, failed := errors.AsType[*exec.ExitError](err); failed != (len(checks) > 0) || failed &&
		exit.ExitCode() != 1 {
		k.t.Errorf("doctor: %v with %v", err, checks)
	}
	return checks, said
}

// well: of a keeper at work nothing is found, but what passes by itself.
func (k *keeper) well() {
	k.t.Helper()
	k.await("doctor finds nothing", func(ctx context.Context) error {
		checks, said := k.doctor(ctx)
		if len(checks) == 0 {
			return nil
		}
		select { // a node that all processes share is not asked all it can be asked again and again
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
		}
		return fmt.Errorf("%v: %s", checks, said)
	})
}

// What goes wrong while a keeper runs is found, and goes away when it is mended.
func TestDoctor(t *testing.T) {
	long(t)
	// A devnet under the race detector is slow: with the demand of the other tests it falls behind its own blocks at
	// times, and the doctor rightly says so.
	k := start(t, func(s *demo.Settings) { s.Rate, s.BlockTime = 1, time.Second })
	k.progress(2, 0)
	k.well()
	finds := func(want string, more ...string) {
		t.Helper()
		k.await("doctor finds "+want, func(ctx context.Context) error {
			checks, said := k.doctor(ctx, more...)
			if !slices.Contains(checks, want) {
				return fmt.Errorf("%v: %s", checks, said)
			}
			return nil
		})
	}
	signers, err := txstore.NewSigners(k.db).List(t.Context())
	if err != nil || len(signers) == 0 {
		t.Fatal(signers, err)
	}
	signer := signers[0].Signer.Hex()
	if out, err := k.Keeperctl(t.Context(), "signer", "pause", signer, "to see it found"); err != nil {
		t.Fatal(out, err)
	}
	finds("signer-paused")
	if out, err := k.Keeperctl(t.Context(), "signer", "resume", signer); err != nil {
		t.Fatal(out, err)
	}
	release := k.Process("planner").Hold()
	finds("state-ready")
	release()
	k.awaitReady()
	finds("topic-partitions", "--keeper.log_partitions=5", "--keeper.job_partitions=3")
	finds("state-partitions", "--keeper.log_partitions=5", "--keeper.job_partitions=3")
	finds("state-ready", "--keeperctl.processes=sender=http://127.0.0.1:1")
	k.well()
	k.finish()
}

// TIER-16: after a backup has stood in for a Master that is down, as it should, its doctor accuses nobody of executing
// before a window, or of executing what is a keeper's.
func TestDoctorAfterATakeover(t *testing.T) {
	long(t)
	k := start(t, func(s *demo.Settings) {
		s.Keepers, s.Rate, s.BlockTime, s.Window = 3, 4, 450*time.Millisecond, 10*time.Second
	})
	k.awaitAll()
	backup := *k
	backup.Keeper, backup.db = k.Keepers[1], rig.Postgres(t, k.Keepers[1].Postgres)
	backup.progress(120, 1)
	t.Cleanup(k.Keepers[0].Hold())
	backup.progress(30, 0)
	checks, said := backup.doctor(t.Context(), "--config", filepath.Join(filepath.Dir(backup.EnvFile()), "keeper.toml"))
	t.Logf("%v", checks)
	if slices.Contains(checks, "tier-windows") || slices.Contains(checks, "tier-unlisted") {
		t.Errorf("%s", said)
	}
}
