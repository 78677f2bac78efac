package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"perpkeeper/pkg/pg"
)

// Sight is what one look at the running keeper shows.
type Sight struct {
	At        time.Duration // since the start
	Overview  pg.Overview
	Head      uint64
	Processes []ProcessSight
	Jobs      JobSight
	Trouble   string // why there is nothing to see, empty otherwise
}

// JobSight is where the keeper's jobs stand, by its own processes' word.
type JobSight struct {
	Live, Queued, InFlight int // due at the planners' last pass; waiting for their signer; sent and not final
}

// ProcessSight is one process: its health and its address.
type ProcessSight struct {
	Name, HTTP, Health string
	Restarts           int
}

// lookTime bounds one question of a look.
const lookTime = 5 * time.Second

// Look asks the database and every process, all at once. It never fails: what cannot be seen is shown as such.
func (s *Stack) Look(ctx context.Context, db *pg.DB, since time.Time) Sight {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	sight := Sight{At: time.Since(since), Processes: make([]ProcessSight, len(s.Processes))}
	var asking sync.WaitGroup
	asking.Go(func() {
		var err error
		if sight.Overview, err = db.Overview(ctx); err != nil {
			sight.Trouble = err.Error()
		}
	})
	metrics := make([]map[string]float64, len(s.Processes))
	for i, p := range s.Processes {
		asking.Go(func() {
			sight.Processes[i] = ProcessSight{p.Name, p.HTTP, health(ctx, p.HTTP), p.Restarts()}
			metrics[i] = p.Metrics(ctx)
		})
	}
	asking.Wait()
	for _, m := range metrics {
		sight.Head = max(sight.Head, uint64(m["scanner_head_number"]))
		sight.Jobs.Live += int(m["planner_jobs_live"])
		sight.Jobs.Queued += int(m["worker_queue_depth"])
		sight.Jobs.InFlight += int(m["sender_in_flight"])
	}
	return sight
}

// health returns "ready", or the first line of what the process says it waits for.
func health(ctx context.Context, address string) string {
	text, status, err := get(ctx, "http://"+address+"/readyz")
	switch {
	case err != nil:
		return "down"
	case status == http.StatusOK:
		return "ready"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return "waits: " + first
}

// Metrics returns the gauges and counters of the process, each summed over its labels; none when they cannot be had.
func (p *Process) Metrics(ctx context.Context) map[string]float64 {
	text, _, err := get(ctx, "http://"+p.HTTP+"/metrics")
	if err != nil {
		return nil
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil
	}
	sums := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			sums[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sums
}

func get(ctx context.Context, url string) (text string, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	return string(body), answer.StatusCode, err
}

// Line is a sight in one line, for logs and pipes.
func (v Sight) Line() string {
	if v.Trouble != "" {
		return fmt.Sprintf("%4.0fs  %s", v.At.Seconds(), v.Trouble)
	}
	o := v.Overview
	return fmt.Sprintf("%4.0fs  head %d, applied %d, final %d | positions %d open, %d closed | orders %d waiting, %d executed, %d cancelled, %d frozen | "+
		"requests %d waiting, %d executed | liquidations %d | jobs %d live, %d in flight, %d transactions",
		v.At.Seconds(), v.Head, o.Watermark.Number, o.Finalized().Number,
		o.Positions["Active"], o.Positions["Closed"], o.Orders["Created"]+o.Orders["Updated"], o.Orders["Executed"], o.Orders["Cancelled"], o.Orders["Frozen"],
		o.Requests["Created"], o.Requests["Executed"], o.Liquidations["Executed"], v.Jobs.Live, v.Jobs.InFlight, o.Sent)
}

// Screen is a sight as a page of text.
func (v Sight) Screen() string {
	var b strings.Builder
	o := v.Overview
	fmt.Fprintf(&b, "perpkeeper demo, %.0f s                                    Ctrl-C ends and cleans up\n\n", v.At.Seconds())
	if v.Trouble != "" {
		fmt.Fprintf(&b, "  %s\n\n", v.Trouble)
	}
	fmt.Fprintf(&b, "  chain         head %-10d applied %-10d finalized %-10d lag %d blocks\n", v.Head, o.Watermark.Number, o.Finalized().Number,
		v.Head-min(v.Head, o.Watermark.Number))
	fmt.Fprintf(&b, "  positions     open %-10d closed  %-10d liquidated %d\n", o.Positions["Active"], o.Positions["Closed"], o.Liquidations["Executed"])
	fmt.Fprintf(&b, "  orders        wait %-10d done    %-10d cancelled %-10d frozen %d\n", o.Orders["Created"]+o.Orders["Updated"], o.Orders["Executed"],
		o.Orders["Cancelled"], o.Orders["Frozen"])
	fmt.Fprintf(&b, "  requests      wait %-10d done    %-10d cancelled %d\n", o.Requests["Created"], o.Requests["Executed"], o.Requests["Cancelled"])
	fmt.Fprintf(&b, "  jobs          live %-10d queued  %-10d in flight %-10d transactions %d\n\n", v.Jobs.Live, v.Jobs.Queued, v.Jobs.InFlight, o.Sent)
	for _, p := range v.Processes {
		fmt.Fprintf(&b, "  %-12s  http://%s/metrics  %s", p.Name, p.HTTP, p.Health)
		if p.Restarts > 0 {
			fmt.Fprintf(&b, " (started again %d times)", p.Restarts)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
