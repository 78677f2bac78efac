package liars

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/test/canon"
	"perpkeeper/test/programs"
)

// keeper is a running stack of one keeper that reads the chain through a few endpoints and prices from a few sources,
// each of its own.
type keeper struct {
	*demo.Stack
	*demo.Keeper
	t         *testing.T
	endpoints []*endpoint
	sources   []*priceSource
	db        *pg.DB
	record    *canon.Chain
	ended     map[string]int // how often a process was ended on purpose
}

// blockTime is BSC's.
const blockTime = 450 * time.Millisecond

// rate is how many things a second the traders begin.
const rate = 2

// start brings a stack up with so many endpoints, and waits until every process is ready.
func start(t *testing.T, endpoints int) *keeper {
	t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	settings := demo.DefaultConfig().Demo
	settings.Binaries, settings.Keepers, settings.BlockTime, settings.Rate = folder, 1, blockTime, rate
	s := demo.New(settings, zerolog.Nop())
	k := &keeper{Stack: s, Keeper: s.Keepers[0], t: t, ended: map[string]int{}}
	s.Adapt = func(d demo.Devnet) (map[string]string, string) { return k.surround(d, endpoints) }
	if err := s.Start(context.Background(), func(string) {}); err != nil {
		k.stop()
		t.Fatal(err)
	}
	if err := k.open(); err != nil {
		k.stop()
		t.Fatal(err)
	}
	return k
}

func (k *keeper) open() (err error) {
	ctx := context.Background()
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL(k.Postgres)
	if k.db, err = pg.Open(ctx, cfg, "liars"); err != nil {
		return err
	}
	if k.record, err = canon.OfDemo(ctx, k.Devnet); err != nil {
		return err
	}
	return k.await(4*time.Minute, k.Ready)
}

// surround puts endpoints and price sources between the keeper and the devnet, and names them in its configuration. The
// last endpoint is reached over HTTP, the others over WebSocket.
func (k *keeper) surround(d demo.Devnet, count int) (settings map[string]string, tables string) {
	var b strings.Builder
	if k.endpoints == nil {
		for i := range count {
			k.endpoints = append(k.endpoints, startEndpoint(k.t, fmt.Sprintf("127.0.0.%d", i+1), d.RPC, d.WS))
			k.sources = append(k.sources, startPriceSource(k.t, d.Feed))
		}
	}
	var urls []string
	for i, e := range k.endpoints {
		scheme := "ws"
		if i == count-1 {
			scheme = "http"
		}
		urls = append(urls, scheme+"://"+e.address)
		fmt.Fprintf(&b, "\n[[scanner.price.source]]\nname = %q\nkind = \"devnet\"\nurl = %q\n", sourceName(i),
			k.sources[i].url)
	}
	return map[string]string{"CHAIN_URLS": strings.Join(urls, ","), "SCANNER_PRICE_URL": "", "LOG_LEVEL": "debug"},
		b.String()
}

// sourceName is what the configuration calls a price source.
func sourceName(i int) string { return fmt.Sprintf("prices-%d", i+1) }

func (k *keeper) stop() {
	if k.db != nil {
		k.db.Close()
	}
	if k.record != nil {
		k.record.Close()
	}
	if err := k.Close(); err != nil {
		k.t.Errorf("stopping: %v", err)
	}
}

// await polls until nothing is missing any more.
func (k *keeper) await(most time.Duration, missing func(context.Context) error) error {
	late := time.NewTimer(most)
	defer late.Stop()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		what := missing(context.Background())
		if what == nil {
			return nil
		}
		select {
		case err := <-k.Failed():
			return err
		case <-late.C:
			return fmt.Errorf("after %s: %w", most, what)
		case <-tick.C:
		}
	}
}

// renew starts the processes anew that talk to endpoints and sources, so that what they have learnt of them is
// forgotten.
func (k *keeper) renew() error {
	for _, name := range []string{"scanner", "sender"} {
		before := k.Process(name).Restarts()
		k.Process(name).End()
		k.ended[name]++
		err := k.await(time.Minute, func(context.Context) error {
			if k.Process(name).Restarts() == before {
				return fmt.Errorf("%s does not end", name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return k.await(2*time.Minute, k.Ready)
}

// crashed names a process that ended by itself.
func (k *keeper) crashed() error {
	for _, p := range k.Processes {
		if n := p.Restarts() - k.ended[p.Name]; n > 0 {
			return fmt.Errorf("%s ended by itself %d times: %s", p.Name, n, p.Tail(2))
		}
	}
	return nil
}

// halted says why the state stands, if it does.
func (k *keeper) halted(ctx context.Context) error {
	progress, err := k.db.Progress(ctx)
	if err == nil && progress.Halted != "" {
		err = fmt.Errorf("the state is halted: %s", progress.Halted)
	}
	return err
}

// settled says what keeps the keeper from being as if nobody had lied: whatever was asked for up to a while ago has
// ended, and the tables say what the chain says.
func (k *keeper) settled(ctx context.Context, from, to uint64) error {
	if err := k.halted(ctx); err != nil {
		return err
	}
	if err := k.record.Equals(ctx, k.db, to); err != nil {
		return err
	}
	return k.record.Unfinished(from, to)
}

// head is the number of the chain's newest block.
func (k *keeper) head(ctx context.Context) (uint64, error) {
	head, err := k.record.Node.Head(ctx)
	return head.Number, err
}

// waits are the first lines of what processes that are not ready say.
func (k *keeper) waits(into map[string]int) {
	for _, p := range k.Processes {
		if text, status := page("http://" + p.HTTP + "/readyz"); status == 503 {
			first, _, _ := strings.Cut(text, "\n")
			into[p.Name+": "+plain(first)]++
		}
	}
}

var (
	figures   = regexp.MustCompile(`0x[0-9a-fA-F]{8,}|\b\d+(\.\d+)?(ms|s|m)?\b`)
	addresses = regexp.MustCompile(`127\.0\.0\.(\d):\d+`)
)

// plain leaves figures and hashes out of a text, so that it can be counted.
func plain(text string) string {
	text = addresses.ReplaceAllString(text, "endpoint_$1")
	text = figures.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, "0x") {
			return "0x…"
		}
		return "N"
	})
	const enough = 200
	return text[:min(len(text), enough)]
}

// held are the reasons why jobs waited since a moment, as the end of the sender's log has them.
func (k *keeper) held(into map[string]int, since time.Time) {
	const lines = 2000
	for line := range strings.Lines(k.Process("sender").Tail(lines)) {
		var entry struct {
			Message, Reason string
			Time            time.Time
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "waiting" && entry.Time.After(since) {
			into["sender, of a job: "+plain(entry.Reason)]++
		}
	}
}

// tally is what the chain says of a stretch of blocks.
type tally struct {
	executed, reverted int
	price              uint64        // wei per gas: half of the transactions paid no more
	slowest            time.Duration // from a market order or request to its end
}

// tallyFrom counts from a block on.
func (k *keeper) tallyFrom(block uint64) (t tally) {
	var prices []uint64
	for _, tx := range k.record.Sent(block) {
		if tx.Kind == "" {
			continue
		}
		prices = append(prices, tx.GasPrice)
		if tx.OK {
			t.executed++
		} else {
			t.reverted++
		}
	}
	if slices.Sort(prices); len(prices) > 0 {
		t.price = prices[len(prices)/2]
	}
	k.record.Born(block, k.record.Next(), func(_ string, final bool, birth, stamp perp.Stamp) {
		if final {
			t.slowest = max(t.slowest, time.Duration(stamp.TimeMs-birth.TimeMs)*time.Millisecond)
		}
	})
	return t
}

// idle says which process is not ready, or has something to do.
func (k *keeper) idle(ctx context.Context) error {
	if err := k.Ready(ctx); err != nil {
		return err
	}
	for _, p := range k.Processes {
		if live := p.Metrics(ctx)["planner_jobs_live"]; live > 0 {
			return fmt.Errorf("%s has %.0f live jobs", p.Name, live)
		}
	}
	return nil
}
