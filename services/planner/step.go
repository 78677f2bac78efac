package planner

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/service"
)

// Stepper is a planner that somebody else drives: the passes that [Planner.Run] makes when it is woken are made when
// the caller asks for it. It has no goroutine and no timer of its own; where time is simulated it is the whole planner,
// but for the wire. It is for one goroutine at a time.
type Stepper struct{ planner *Planner }

// NewStepper wires a planner that passes its jobs to publish. What publish returns is what a broker would answer: after
// an error all live jobs are published again.
func NewStepper(cfg Config, log zerolog.Logger, metrics *Metrics, store Store,
	publish func(context.Context, []job.Job) error) *Stepper {
	p := newPlanner(cfg, log, metrics, store)
	p.publish, p.stateReady, p.jobsReady = publish, new(service.Condition), new(service.Condition)
	return &Stepper{p}
}

// Assign sets the partitions of the log topic that the planner is responsible for. The next [Stepper.Reload] looks at
// them.
func (s *Stepper) Assign(partitions []int) { s.planner.shards.assign(partitions) }

// Report takes a price report in. The next pass judges with it.
func (s *Stepper) Report(r price.Report) { s.planner.quotes.add(r, time.Now()) }

// Tick looks at the markets whose prices have moved since the last pass (LIQ-2).
func (s *Stepper) Tick(ctx context.Context) error { return s.planner.tick(ctx) }

// Reload takes in what became of the state, partitions that are new to the planner included, and looks at every market.
func (s *Stepper) Reload(ctx context.Context) error {
	err := s.planner.reload(ctx)
	for err == nil {
		select {
		case a := <-s.planner.loads.arrived:
			err = s.planner.arrive(ctx, a)
		default:
			return nil
		}
	}
	return err
}

// Sweep judges every position exactly, publishes every live job again, and returns after how long the next sweep is due
// (LIQ-1).
func (s *Stepper) Sweep(ctx context.Context) (next time.Duration, err error) {
	err = s.planner.sweep(ctx)
	return s.planner.mode.SweepInterval(s.planner.cfg.Planner.SweepInterval), err
}
