package scanner

import (
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// progress says how far a backfill has come: in a log line now and then, and in the status. It is safe for
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
	blocks, logs, eta := p.pace(now)
	p.log.Info().Uint64("block", p.at).Uint64("to", p.to).Float64("blocks_per_second", blocks).
		Float64("logs_per_second", logs).Float64("eta_seconds", eta).Msg("publishing history")
	p.said = now
}

// pace is what was published a second since the backfill began, and how long it takes at that. The mutex is held.
func (p *progress) pace(now time.Time) (blocks, logs, etaSeconds float64) {
	if seconds := now.Sub(p.began).Seconds(); seconds > 0 {
		blocks, logs = float64(p.blocks)/seconds, float64(p.logs)/seconds
	}
	if blocks > 0 {
		etaSeconds = float64(p.to-p.at) / blocks
	}
	return blocks, logs, etaSeconds
}

// String is one line on the backfill under way.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.to == 0 {
		return "publishing history"
	}
	blocks, _, eta := p.pace(time.Now())
	return fmt.Sprintf("publishing history: block %d of %d, %.0f blocks/s, %.0f s to go", p.at, p.to, blocks, eta)
}
