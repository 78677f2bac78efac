package planner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/liquidation"
	"perpkeeper/pkg/setting/check"
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
	Bindings      []Binding     `toml:"bindings" help:"signers that take the jobs of some lanes only; whoever is not named here takes all"`
	SweepInterval time.Duration `toml:"sweep_interval" help:"how often every position is judged and every live job published, whether or not anything changed"`
	AdlRole       bool          `toml:"adl_role" help:"this keeper's signers hold the deleveraging role, so sides that have gained too much are deleveraged"`
	CancelExpired bool          `toml:"cancel_expired" help:"cancel requests and market orders that expired, from contracts v2.2c on: it costs gas, for which no fee comes back"`
}

// Binding binds one of the signers to lanes. Only the planner reads it: a job carries its signer, and whoever has the
// signer's key sends it, so that nobody can disagree about who takes it.
type Binding struct {
	Signer chain.Address `toml:"signer" help:"one of keeper.signers"`
	Lanes  []string      `toml:"lanes" help:"the lanes it takes: liquidation (with deleveraging), order, maintenance (deposits, withdrawals, shifts)"`
}

// DefaultConfig sweeps every 10 s (LIQ-1).
func DefaultConfig() Config {
	return Config{
		Keeper: wire.DefaultConfig(), Kafka: bus.DefaultConfig(), Postgres: pg.DefaultConfig(),
		Liquidation: liquidation.DefaultConfig(),
		Planner:     Settings{SweepInterval: job.SaidEvery},
		Delayed:     delayed.DefaultConfig(), Commission: delayed.DefaultCommissionConfig(),
	}
}

// Validate is for what concerns several sections at once; the sections are asked by themselves.
func (c Config) Validate() error {
	return errors.Join(append(c.checkBindings(),
		check.Refuse(len(c.Keeper.Signers) == 0, "keeper.signers: is empty (name at least one signer's address)"))...)
}

// Validate names every setting that cannot work.
func (s Settings) Validate() error {
	return check.Between("sweep_interval", s.SweepInterval, 100*time.Millisecond, job.SaidEvery)
}

// signers are who takes which jobs.
func (c Config) signers() job.Signers {
	bound := map[chain.Address][]job.Lane{}
	for _, b := range c.Planner.Bindings {
		for _, lane := range b.Lanes {
			bound[b.Signer] = append(bound[b.Signer], job.Lane(lane))
		}
	}
	return job.NewSigners(c.Keeper.Signers, bound)
}

// checkBindings names every binding that cannot work, and every lane that nobody takes: its jobs would wait for ever.
func (c Config) checkBindings() (problems []error) {
	bindings := c.Planner.Bindings
	for i, b := range bindings {
		add := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("planner.bindings[%d]: "+format, append([]any{i}, args...)...))
		}
		if !slices.Contains(c.Keeper.Signers, b.Signer) {
			add("signer %s is not among keeper.signers (add it there, or remove the binding)", b.Signer)
		}
		if slices.ContainsFunc(bindings[:i], func(o Binding) bool { return o.Signer == b.Signer }) {
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
	for _, lane := range c.signers().Unserved() {
		if len(bindings) > 0 && len(problems) == 0 {
			problems = append(problems, fmt.Errorf("planner.bindings: no signer takes the lane %s (bind one to it, or "+
				"leave one unbound: it takes all)", lane))
		}
	}
	return problems
}
