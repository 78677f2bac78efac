package pricefeed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Feed makes and serves reports. All methods may be called from any goroutine.
type Feed struct {
	cfg      Config
	listener net.Listener

	mu      sync.Mutex
	walks   map[common.Address]*walk
	kept    [][]Report    // One element per tick, oldest first; reports in the order of Config.Tokens.
	dropped bool          // Whether ticks have been thrown away.
	changed chan struct{} // Closed and replaced at every tick.
}

// New makes the first reports and opens the listener, so that URL is known; Run serves it and makes the further
// reports. A Feed that is never run must be closed with Close.
func New(cfg Config) (*Feed, error) {
	cfg.Interval = cmp.Or(cfg.Interval, DefaultInterval)
	cfg.Listen = cmp.Or(cfg.Listen, "127.0.0.1:0")
	f := &Feed{cfg: cfg, walks: map[common.Address]*walk{}, changed: make(chan struct{})}
	for i, token := range cfg.Tokens {
		f.walks[token.Address] = newWalk(token, cfg.Seed, i)
	}
	f.report(time.Now())
	var err error
	if f.listener, err = new(net.ListenConfig).Listen(context.Background(), "tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("opening the price feed's listener: %w (devnet.feed)", err)
	}
	return f, nil
}

// URL is the address of the HTTP service.
func (f *Feed) URL() string { return "http://" + f.listener.Addr().String() }

// Close frees the listener of a feed that is not run.
func (f *Feed) Close() error { return f.listener.Close() }

// Run makes reports and serves them until ctx ends; then it returns nil.
func (f *Feed) Run(ctx context.Context) error {
	server := &http.Server{Handler: f.routes(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(f.listener) }()
	tick := time.NewTicker(f.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			f.tick(now)
		case err := <-served:
			return fmt.Errorf("serving prices: %w", err)
		case <-ctx.Done():
			closed := server.Close()
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				return errors.Join(fmt.Errorf("serving prices: %w", err), closed)
			}
			return closed
		}
	}
}

func (f *Feed) tick(now time.Time) {
	f.mu.Lock()
	for _, token := range f.cfg.Tokens {
		f.walks[token.Address].tick()
	}
	f.mu.Unlock()
	f.report(now)
}

// report signs the present prices and makes them the newest ones. Reports older than Kept go.
func (f *Feed) report(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ms := uint64(now.UnixMilli())
	reports := make([]Report, 0, len(f.cfg.Tokens))
	for _, token := range f.cfg.Tokens {
		low, high := f.walks[token.Address].mark()
		data := f.cfg.Sign(token.Address, low, high, ms/1000)
		reports = append(reports, Report{token.Address, f.cfg.Provider, data, Price{low}, Price{high}, ms})
	}
	f.kept = append(f.kept, reports)
	horizon := uint64(now.Add(-Kept).UnixMilli())
	if old := f.firstSince(horizon); old > 0 {
		f.kept, f.dropped = slices.Delete(f.kept, 0, old), true
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// firstSince is the index of the first tick at or after a time in milliseconds. The caller holds mu.
func (f *Feed) firstSince(ms uint64) int {
	return sort.Search(len(f.kept), func(i int) bool { return f.kept[i][0].TimestampMS >= ms })
}

// Latest returns the newest report of every token and a channel that closes when there are newer ones.
func (f *Feed) Latest() ([]Report, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept[len(f.kept)-1], f.changed
}

// Since returns what came after a time in milliseconds, one element per tick, oldest first, and a channel that closes
// when there is more. Ticks that are no longer kept are left out.
func (f *Feed) Since(ms uint64) ([][]Report, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.kept[f.firstSince(ms+1):]), f.changed
}

// errForgotten means that a report was asked for that is no longer kept.
var errForgotten = fmt.Errorf("reports are kept for %s", Kept)

// At returns of every token the first report at or after a Unix second; none if that lies in the future. It fails for a
// second so long ago that its reports are not kept.
func (f *Feed) At(second uint64) ([]Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.firstSince(second * 1000)
	switch {
	case first == len(f.kept):
		return []Report{}, nil
	case first == 0 && f.dropped && second*1000 < f.kept[0][0].TimestampMS:
		return nil, errForgotten
	}
	return f.kept[first], nil
}

// Mark returns the present price of a token, in USD·10^30 per smallest unit; nil for a token the feed does not know.
func (f *Feed) Mark(token common.Address) (low, high *big.Int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.walks[token]
	if w == nil {
		return nil, nil
	}
	return w.mark()
}

// Shock moves the price of a token at once, by basis points: -2000 takes 20 % off. A pinned price stays pinned at its
// new height. It shows in the next report.
func (f *Feed) Shock(token common.Address, points int64) error {
	if points <= -basis {
		return fmt.Errorf("a shock of %d basis points would leave no price", points)
	}
	return f.change(token, func(w *walk) error {
		price := w.shocked(points)
		if price.Sign() == 0 {
			return errors.New("the price is too low to be shocked further")
		}
		w.rebase(price)
		return nil
	})
}

// Pin sets the mid price of a token, in USD·10^30 per smallest unit, and keeps it there until Unpin.
func (f *Feed) Pin(token common.Address, price *big.Int) error {
	if price.Sign() <= 0 {
		return fmt.Errorf("a price of %s is not positive", price)
	}
	return f.change(token, func(w *walk) error {
		w.rebase(new(big.Int).Set(price))
		w.pinned = true
		return nil
	})
}

// Unpin lets the price of a token walk again.
func (f *Feed) Unpin(token common.Address) error {
	return f.change(token, func(w *walk) error {
		w.pinned = false
		return nil
	})
}

func (f *Feed) change(token common.Address, how func(*walk) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.walks[token]
	if w == nil {
		return fmt.Errorf("no price of token %s", token)
	}
	return how(w)
}
