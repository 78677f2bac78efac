package failover

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/tier"
	"perpkeeper/test/programs"
)

// window is the one that keepers have by themselves.
var window = tier.DefaultConfig().Window

const (
	// length makes more than 300 jobs at the traders' rate.
	length = 190 * time.Second
	rate   = 2
	// slack is what an execution may take beyond the beginning of its window, on a machine that runs everything at
	// once.
	slack = 10 * time.Second
)

// row plays acts on three keepers of their own, and holds what the chain says of each against what was expected. It
// returns the scenes.
func row(t *testing.T, acts ...demo.Act) []demo.Scene {
	t.Helper()
	if os.Getenv("KEEPER_FAILOVER") == "" {
		t.Skip("set KEEPER_FAILOVER=1, or run make failover")
	}
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	settings := demo.DefaultFailover().Demo
	settings.Binaries, settings.Window, settings.Rate = folder, window, rate
	s := demo.New(settings, zerolog.New(zerolog.NewTestWriter(t)))
	s.Resting = true
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	if err := s.Start(context.Background(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	p := demo.NewPlay(s)
	t.Cleanup(p.Close)
	scenes, err := play(t.Context(), p, acts)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := demo.WriteScenes(&text, scenes, settings.Keepers); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &text)
	if err := demo.Judge(scenes); err != nil {
		t.Error(err)
	}
	return scenes
}

func play(ctx context.Context, p *demo.Play, acts []demo.Act) ([]demo.Scene, error) {
	if err := p.Begin(ctx); err != nil {
		return nil, err
	}
	for _, a := range acts {
		if err := p.Perform(ctx, a); err != nil {
			return nil, err
		}
	}
	if err := p.AwaitIdle(ctx); err != nil {
		return nil, err
	}
	return p.Scenes(ctx)
}

// TIER-17, TIER-18: while all are well the Master executes everything at once, and nobody else sends anything.
func TestNormal(t *testing.T) {
	row(t, demo.Act{Name: "normal", Run: demo.Lasts(length),
		Expect: demo.Expectation{By: []int{1}, P99: 3 * time.Second}})
}

// TIER-1, TIER-10: without the Master, Backup-1 executes everything in its own window, and soon at once.
func TestMasterDown(t *testing.T) {
	row(t, demo.Act{
		Name: "Master down", Open: demo.Kill(1), Run: demo.Lasts(length),
		Expect: demo.Expectation{By: []int{2, 3}, Heir: 2, Oldest: window + slack},
	})
}

// TIER-1, TIER-3: of three keepers two may be down.
func TestMasterAndBackupDown(t *testing.T) {
	row(t, demo.Act{
		Name: "Master and Backup-1 down", Open: demo.Kill(1, 2), Run: demo.Lasts(length),
		Expect: demo.Expectation{By: []int{3}, Oldest: 2*window + slack},
	})
}

// TIER-9: all are down for two minutes and start together. Each executes what is in its own window, nothing is sent
// twice, and what piled up is done soon.
func TestAllDownAndCommonRestart(t *testing.T) {
	const dark, soon = 120 * time.Second, 30 * time.Second
	var readyMs uint64
	scenes := row(t,
		demo.Act{Name: "normal", Run: demo.Lasts(20 * time.Second), Expect: demo.Expectation{By: []int{1}}},
		demo.Act{Name: "all down", Open: demo.Kill(1, 2, 3), Run: demo.Lasts(dark)},
		demo.Act{Name: "common restart", Open: demo.Restore(1, 2, 3),
			Run: func(ctx context.Context, p *demo.Play) (err error) {
				if readyMs, err = p.AwaitReady(ctx); err != nil {
					return err
				}
				return p.Wait(ctx, 2*window)
			}, Expect: demo.Expectation{By: []int{1, 2, 3}}},
	)
	restart := scenes[2]
	waited, late, last := 0, 0, restart.OpenedMs
	for _, r := range restart.Rows {
		if r.Winner == nil || r.BornMs == 0 || r.BornMs >= restart.OpenedMs {
			continue
		}
		if waited, last = waited+1, max(last, r.Winner.TimeMs); r.Winner.TimeMs > readyMs+uint64(soon.Milliseconds()) {
			late++
			t.Logf("%s of age %d ms at the restart was executed by tier %d at age %d ms", r.Key,
				restart.OpenedMs-r.BornMs, r.Winner.Tier, r.AgeMs)
		}
	}
	since := func(ms uint64) time.Duration { return time.Duration(int64(last)-int64(ms)) * time.Millisecond }
	t.Logf("%d requests had piled up; the last was executed %s after the restart, %s after every process was ready",
		waited,
		since(restart.OpenedMs), since(readyMs))
	if waited == 0 || late > 0 {
		t.Errorf("of %d requests that had piled up %d were executed later than %s after every process was ready",
			waited, late, soon)
	}
}

// TIER-10: a Master that comes and goes every 20 s is no reason to send twice, and no job is older for it than one
// whose Master is gone.
func TestMasterFlaps(t *testing.T) {
	const each = 20 * time.Second
	flap := func(ctx context.Context, p *demo.Play) error {
		for began := time.Now(); time.Since(began) < length; {
			p.Down(1)
			if err := p.Wait(ctx, each); err != nil {
				return err
			}
			p.Up(1)
			if err := p.Wait(ctx, each); err != nil {
				return err
			}
		}
		return nil
	}
	row(t, demo.Act{Name: fmt.Sprintf("Master flaps every %s", each), Run: flap,
		Expect: demo.Expectation{By: []int{1, 2, 3}, Oldest: window + slack}})
}

// TIER-17: the Master returns while Backup-1 executes: it takes over again by a probe. What Backup-1 has sent by then
// may land late: one transaction may come when its job is done.
func TestMasterReturns(t *testing.T) {
	row(t,
		demo.Act{Name: "Master down", Open: demo.Kill(1), Run: demo.Lasts(2 * window), Expect: demo.Expectation{
			By: []int{2, 3}, Heir: 2, Oldest: window + slack,
		}},
		demo.Act{Name: "Master returns", Open: demo.Restore(1), Run: demo.Lasts(length), Expect: demo.Expectation{
			By: []int{1, 2, 3}, Heir: 1, Oldest: window + slack, Duplicates: 1,
		}},
	)
}
