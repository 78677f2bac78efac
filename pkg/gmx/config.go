package gmx

import (
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// Config names the contracts of one exchange. Every deployment has its own addresses, so there are no defaults.
type Config struct { //nolint:recvcheck // one method fills it, the others read
	EventEmitter         chain.Address `toml:"event_emitter" help:"the contract that emits every event"`
	DataStore            chain.Address `toml:"data_store" help:"the contract that holds every parameter"`
	Oracle               chain.Address `toml:"oracle" help:"the contract that takes price reports"`
	OrderHandler         chain.Address `toml:"order_handler" help:"executes orders"`
	LiquidationHandler   chain.Address `toml:"liquidation_handler" help:"executes liquidations"`
	AdlHandler           chain.Address `toml:"adl_handler" help:"executes auto-deleveraging"`
	DepositHandler       chain.Address `toml:"deposit_handler" help:"executes deposits"`
	WithdrawalHandler    chain.Address `toml:"withdrawal_handler" help:"executes withdrawals"`
	ShiftHandler         chain.Address `toml:"shift_handler" help:"executes shifts; empty where the exchange has none"`
	GlvDepositHandler    chain.Address `toml:"glv_deposit_handler" help:"executes GLV deposits; empty where the exchange has none"`
	GlvWithdrawalHandler chain.Address `toml:"glv_withdrawal_handler" help:"executes GLV withdrawals; empty where the exchange has none"`
	GlvShiftHandler      chain.Address `toml:"glv_shift_handler" help:"executes GLV shifts; empty where the exchange has none"`
}

// DefaultConfig returns the configuration that names nothing yet.
func DefaultConfig() Config { return Config{} }

// Validate demands the one address that every process needs. Handlers are demanded by [Config.Demand], and when a job
// needs one, by [Config.Call].
func (c Config) Validate() error {
	if c.EventEmitter.IsZero() {
		return errors.New("event_emitter: no address given; set it to the exchange's EventEmitter")
	}
	return nil
}

// Demand says which handlers are missing of those that execute the given kinds.
func (c Config) Demand(kinds ...job.Kind) error {
	var problems []error
	for _, kind := range kinds {
		if e := executions[kind]; e.handler(c).IsZero() {
			problems = append(problems, fmt.Errorf("venue.%s: no address given; no %s could be executed (keeperctl "+
				"addresses finds the contracts)", e.setting, kind))
		}
	}
	return errors.Join(problems...)
}

// Call returns the contract and the calldata that execute a job with the given price reports.
func (c Config) Call(j job.Job, prices SetPrices) (to chain.Address, calldata []byte, err error) {
	e, known := executions[j.Kind]
	if !known {
		return to, nil, fmt.Errorf("job %s: no call executes a %q", j.ID, j.Kind)
	}
	if to = e.handler(c); to.IsZero() {
		return to, nil, fmt.Errorf("job %s: %s is not configured", j.ID, e.setting)
	}
	if err := prices.check(); err != nil {
		return to, nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	return to, e.encode(j, prices), nil
}
