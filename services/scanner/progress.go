package scanner

import (
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// progress says how far a backfill has come: in a log line now and then, and on the status page. It is safe for
// concurrent use.
type progress struct {
	log     zerolog.Logger
	metrics *Metrics

	mu           sync.Mutex
	from, to, at uint64 // from is the block below the first
	blocks, logs int    // published since it began
	began, said  time.Time
}

func newProgress(log zerolog.Logger, metrics *Metrics) *progress {
	return &progress{log: log, metrics: metrics}
}

// everyLine is how often it is said.
const everyLine = 10 * time.Second

func (p *progress) begin(from, to uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.from, p.to, p.at, p.blocks, p.logs, p.began, p.said = from, to, from, 0, 0, now, now
	p.metrics.backfillLeft.Set(float64(to - from))
}

// add notes that blocks up to at are published.
func (p *progress) add(at uint64, blocks, logs int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.blocks, p.logs = at, p.blocks+blocks, p.logs+logs
	p.metrics.backfillLeft.Set(float64(p.to - at))
	p.say(time.Now(), false)
}

// end says the last state.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(time.Now(), true)
	p.metrics.backfillLeft.Set(0)
	p.to = 0
}

func (p *progress) say(now time.Time, last bool) {
	if !last && now.Sub(p.said) < everyLine {
		return
	}
	r := p.report(now)
	p.log.Info().Uint64("block", r.At).Uint64("to", r.To).Float64("blocks_per_second", r.BlocksPerSecond).
		Float64("logs_per_second", r.LogsPerSecond).Float64("eta_seconds", r.ETASeconds).Msg("publishing history")
	p.said = now
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
	return fmt.Sprintf("publishing history: block %d of %d, %.0f blocks/s, %.0f s to go", r.At, r.To, r.BlocksPerSecond,
		r.ETASeconds)
}
