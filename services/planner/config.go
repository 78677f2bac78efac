package planner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/check"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/liquidation"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/wire"
)

// Config is the whole configuration of the process.
type Config struct {
	Keeper      wire.Config        `toml:"keeper"`
	Kafka       bus.Config         `toml:"kafka"`
	Postgres    pg.Config          `toml:"postgres"`
	Liquidation liquidation.Config `toml:"liquidation"`
	Planner     Settings           `toml:"planner"`

	Delayed    delayed.Config           `toml:"delayed"`
	Commission delayed.CommissionConfig `toml:"commission"`
}

// Settings is the [planner] section.
type Settings struct {
	Signers       []chain.Address `toml:"signers" help:"addresses of this keeper's enabled signers; jobs are routed to them by account"`
	Bindings      []Binding       `toml:"bindings" help:"signers that take the jobs of some lanes only; whoever is not named here takes all"`
	SweepInterval time.Duration   `toml:"sweep_interval" help:"how often every live job is published again, whether or not anything changed"`
	PriceMaxAge   time.Duration   `toml:"price_max_age" help:"reports older than this are not judged with"`
	AdlRole       bool            `toml:"adl_role" help:"this keeper's signers hold the deleveraging role, so sides that have gained too much are deleveraged"`
	FrozenRole    bool            `toml:"frozen_role" help:"this keeper's signers hold the frozen-order role, so frozen orders and limit swaps are jobs too"`
}

// Binding binds one of the signers to lanes. Only the planner reads it: a job carries its signer, and whoever has the
// signer's key sends it, so that nobody can disagree about who takes it.
type Binding struct {
	Signer chain.Address `toml:"signer" help:"one of planner.signers"`
	Lanes  []string      `toml:"lanes" help:"the lanes it takes: liquidation (with deleveraging), order, maintenance (deposits, withdrawals, shifts)"`
}

// DefaultConfig sweeps every 10 s (LIQ-1).
func DefaultConfig() Config {
	return Config{
		Keeper: wire.DefaultConfig(), Kafka: bus.DefaultConfig(), Postgres: pg.DefaultConfig(),
		Liquidation: liquidation.DefaultConfig(),
		Planner:     Settings{SweepInterval: 10 * time.Second, PriceMaxAge: 30 * time.Second},
		Delayed:     delayed.DefaultConfig(), Commission: delayed.DefaultCommissionConfig(),
	}
}

// Validate is for what concerns several sections at once, or what the venue's contracts can do; the sections are asked
// by themselves.
func (c Config) Validate() error {
	if c.Liquidation.Slice.Factor.IsZero() || gmx.PartialLiquidations {
		return nil
	}
	return fmt.Errorf("liquidation.slice: is %s, but contracts of the GMX kind liquidate whole positions only: "+
		"remove it, or set liquidation.spacing instead",
		c.Liquidation.Slice)
}

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	problems := append(s.checkBindings(),
		check.Refuse(len(s.Signers) == 0, "signers: is empty (name at least one signer's address)"))
	return errors.Join(append(problems,
		check.Between("sweep_interval", s.SweepInterval, 100*time.Millisecond, 10*time.Minute),
		check.Refuse(s.PriceMaxAge < time.Second || s.PriceMaxAge > 5*time.Minute, "price_max_age: %s is not between "+
			"1s and 5m (the venue refuses reports older than 300 s)", s.PriceMaxAge))...)
}

// signers are who takes which jobs.
func (s Settings) signers() job.Signers {
	bound := map[chain.Address][]job.Lane{}
	for _, b := range s.Bindings {
		for _, lane := range b.Lanes {
			bound[b.Signer] = append(bound[b.Signer], job.Lane(lane))
		}
	}
	return job.NewSigners(s.Signers, bound)
}

// checkBindings names every binding that cannot work, and every lane that nobody takes: its jobs would wait for ever.
func (s Settings) checkBindings() (problems []error) {
	for i, b := range s.Bindings {
		add := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("bindings[%d]: "+format, append([]any{i}, args...)...))
		}
		if !slices.Contains(s.Signers, b.Signer) {
			add("signer %s is not among planner.signers (add it there, or remove the binding)", b.Signer)
		}
		if slices.ContainsFunc(s.Bindings[:i], func(o Binding) bool { return o.Signer == b.Signer }) {
			add("signer %s is bound twice (name all its lanes in one place)", b.Signer)
		}
		if len(b.Lanes) == 0 {
			add("signer %s has no lanes (name some, or remove the binding: it takes all then)", b.Signer)
		}
		for _, lane := range b.Lanes {
			if !slices.Contains(job.Lanes(), job.Lane(lane)) {
				add("%q is no lane (there are %v)", lane, job.Lanes())
			}
		}
	}
	for _, lane := range s.signers().Unserved() {
		if len(s.Bindings) > 0 && len(problems) == 0 {
			problems = append(problems, fmt.Errorf("bindings: no signer takes the lane %s (bind one to it, or leave "+
				"one unbound: it takes all)", lane))
		}
	}
	return problems
}
