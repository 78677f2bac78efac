package scanner

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// progress shows how far a backfill has come: as a bar on a terminal, as a log line now and then elsewhere. It is safe
// for concurrent use.
type progress struct {
	log      zerolog.Logger
	terminal io.Writer // nil if there is none
	metrics  *Metrics

	mu           sync.Mutex
	from, to, at uint64 // from is the block below the first
	blocks, logs int    // published since it began
	began, shown time.Time
}

func newProgress(log zerolog.Logger, metrics *Metrics) *progress {
	p := &progress{log: log, metrics: metrics}
	if isatty.IsTerminal(os.Stderr.Fd()) {
		p.terminal = os.Stderr
	}
	return p
}

// How often progress is shown.
const (
	everyBar  = 200 * time.Millisecond
	everyLine = 10 * time.Second
)

func (p *progress) begin(from, to uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.from, p.to, p.at, p.blocks, p.logs, p.began, p.shown = from, to, from, 0, 0, now, now
	p.metrics.backfillLeft.Set(float64(to - from))
}

// add notes that blocks up to at are published.
func (p *progress) add(at uint64, blocks, logs int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.blocks, p.logs = at, p.blocks+blocks, p.logs+logs
	p.metrics.backfillLeft.Set(float64(p.to - at))
	p.show(time.Now(), false)
}

// end shows the last state, if anything was published.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show(time.Now(), true)
	p.metrics.backfillLeft.Set(0)
	p.to = 0
}

func (p *progress) show(now time.Time, last bool) {
	r := p.report(now)
	switch since := now.Sub(p.shown); {
	case p.terminal != nil && (last || since >= everyBar):
		_, _ = fmt.Fprintf(p.terminal, "\r%s\x1b[K", r.bar()) // a bar that nobody sees is no reason to stop
		if last {
			_, _ = fmt.Fprintln(p.terminal)
		}
	case p.terminal == nil && (last || since >= everyLine):
		p.log.Info().Uint64("block", r.At).Uint64("to", r.To).Float64("blocks_per_second", r.BlocksPerSecond).
			Float64("logs_per_second", r.LogsPerSecond).Float64("eta_seconds", r.ETASeconds).Msg("publishing history")
	default:
		return
	}
	p.shown = now
}

// backfillReport is the state of a backfill, as the status page shows it.
type backfillReport struct {
	From            uint64  `json:"from"`
	To              uint64  `json:"to"`
	At              uint64  `json:"at"`
	BlocksPerSecond float64 `json:"blocks_per_second"`
	LogsPerSecond   float64 `json:"logs_per_second"`
	ETASeconds      float64 `json:"eta_seconds"`
}

// report computes the state at a time. The mutex is held.
func (p *progress) report(now time.Time) backfillReport {
	r := backfillReport{From: p.from + 1, To: p.to, At: p.at}
	if seconds := now.Sub(p.began).Seconds(); seconds > 0 {
		r.BlocksPerSecond, r.LogsPerSecond = float64(p.blocks)/seconds, float64(p.logs)/seconds
	}
	if r.BlocksPerSecond > 0 {
		r.ETASeconds = float64(p.to-p.at) / r.BlocksPerSecond
	}
	return r
}

// current is the state of the backfill that is under way, if one is.
func (p *progress) current() *backfillReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to == 0 {
		return nil
	}
	r := p.report(time.Now())
	return &r
}

// String is one line on the backfill under way.
func (p *progress) String() string {
	r := p.current()
	if r == nil {
		return "publishing history"
	}
	return fmt.Sprintf("publishing history: block %d of %d, %.0f blocks/s, %s to go", r.At, r.To, r.BlocksPerSecond,
		r.eta())
}

func (r backfillReport) eta() time.Duration {
	return time.Duration(r.ETASeconds * float64(time.Second)).Truncate(time.Second)
}

func (r backfillReport) bar() string {
	const width = 30
	done := width
	if all := r.To - (r.From - 1); all > 0 {
		done = int(width * (r.At - (r.From - 1)) / all)
	}
	return fmt.Sprintf("history [%s%s] block %d of %d  %.0f blocks/s  %.0f logs/s  %s to go",
		strings.Repeat("#", done), strings.Repeat(".", width-done), r.At, r.To, r.BlocksPerSecond, r.LogsPerSecond,
		r.eta())
}
