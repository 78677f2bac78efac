package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/perp"
	"perpkeeper/test/programs"
)

// upgradeFrom is the commit that an upgrade begins with, by its name for git; make upgrade-test says which.
func upgradeFrom(t *testing.T) string {
	t.Helper()
	commit := os.Getenv("KEEPER_UPGRADE_FROM")
	if commit == "" {
		t.Skip("set KEEPER_UPGRADE_FROM to a commit or tag, or run make upgrade-test")
	}
	return commit
}

// twoOfEach is a region in which processes can be replaced one after the other.
func twoOfEach(binaries string) func(*demo.Settings) {
	return func(s *demo.Settings) {
		s.Binaries, s.Statevm, s.Planner, s.Sender, s.Signers = binaries, 2, 2, 2, 4
	}
}

// PIPE-7, PIPE-8: the processes of a region are replaced, one after the other, by those of this build, readers of a
// topic before its writer. Jobs are executed all the while, by builds side by side; nothing is lost or sent twice.
func TestRollingUpgrade(t *testing.T) {
	before, hash, err := programs.At(t.Context(), upgradeFrom(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("from commit %s", hash)
	now := folder(t)
	k := start(t, twoOfEach(before))
	k.executes(4)
	k.UseBinaries(now)
	k.keeperctl("prepare")
	for _, name := range []string{
		"statevm-1", "statevm-2", "planner-1", "planner-2", "sender-1", "sender-2", "scanner",
	} {
		k.exchange(name, now)
		k.executes(2)
	}
	k.awaitReady()
	k.finish()
}

// PIPE-7, PIPE-8: the same where the new build has another layout of the state. Its statevm fills a generation beside
// the one that serves; its planner and sender wait. At the switch they take over, while those of before end: neither
// planner nor sender stops for longer than that takes.
func TestUpgradeToAnotherLayout(t *testing.T) {
	upgradeFrom(t)
	before, err := programs.Changed("layout", otherLayout(t))
	if err != nil {
		t.Fatal(err)
	}
	now := folder(t)
	k := start(t, twoOfEach(before))
	k.executes(4)
	k.UseBinaries(now)
	k.keeperctl("prepare")
	for _, name := range []string{"statevm-2", "planner-2", "sender-2"} {
		k.exchange(name, now)
	}
	k.executes(2)
	if out := k.keeperctl("rebuild"); !strings.Contains(out, "generation 2 is filled") {
		t.Fatalf("keeperctl rebuild says %q", out)
	}
	k.executes(2)
	k.keeperctl("generations", "switch", "2", "--keeperctl.reason=another layout")
	switched := time.Now()
	k.executes(1)
	t.Logf("the first order after the switch was executed after %s", time.Since(switched).Round(time.Millisecond))
	k.executes(3)
	for _, name := range []string{"statevm-1", "planner-1", "sender-1", "scanner"} {
		k.exchange(name, now)
	}
	k.awaitReady()
	k.executes(2)
	k.finish()
}

// folder is where the programs of this build are.
func folder(t *testing.T) string {
	t.Helper()
	now, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// otherLayout changes the number of the state's layout, and nothing else: which build may read a generation is decided
// by the number alone.
func otherLayout(t *testing.T) map[string][]byte {
	t.Helper()
	const file = "pkg/pg/state/tables.sql"
	source, err := programs.Source(file)
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`^-- state layout ([0-9]+)`)
	found := number.FindSubmatch(source)
	if found == nil {
		t.Fatalf("%s names no layout", file)
	}
	layout, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{file: number.ReplaceAll(source, fmt.Appendf(nil, "-- state layout %d", 1000+layout))}
}

// exchange has a process replaced by that of another build, and waits until the one of before has ended.
func (k *keeper) exchange(name, folder string) {
	k.t.Helper()
	p := k.Process(name)
	if p == nil {
		k.t.Fatalf("there is no %s", name)
	}
	ended := p.Restarts()
	if err := p.Exchange(folder); err != nil {
		k.t.Fatal(err)
	}
	k.await(name+" ends", func(context.Context) error {
		if p.Restarts() == ended {
			return fmt.Errorf("%s of the build before", name)
		}
		return nil
	})
	k.t.Logf("%s is of the new build", name)
}

// keeperctl runs a command of the operator's, which has to succeed.
func (k *keeper) keeperctl(args ...string) string {
	k.t.Helper()
	out, err := k.Keeperctl(k.t.Context(), args...)
	if err != nil {
		k.t.Fatalf("keeperctl %s: %s: %v", strings.Join(args, " "), out, err)
	}
	return out
}

// executes waits until the chain has so many more executed orders than at the call. It asks the chain, as the state may
// be of a layout that this build cannot read.
func (k *keeper) executes(orders int) {
	k.t.Helper()
	before := -1
	k.await(fmt.Sprintf("%d more orders are executed", orders), func(ctx context.Context) error {
		now, err := k.executed(ctx)
		if err != nil {
			return err
		}
		if before < 0 {
			before = now
		}
		if now < before+orders {
			return fmt.Errorf("%d", now-before)
		}
		return nil
	})
}

func (k *keeper) executed(ctx context.Context) (count int, err error) {
	if err := k.canonical.ToHead(ctx); err != nil {
		return 0, err
	}
	for _, row := range k.canonical.Book.Rows(perp.Orders) {
		if o, is := row.(perp.Order); is && o.Status == perp.Executed {
			count++
		}
	}
	return count, nil
}
