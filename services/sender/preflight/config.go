package preflight

import (
	"errors"
	"reflect"
	"strings"

	"perpkeeper/pkg/check"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

// Gas is an operator's own gas limit for each kind of transaction, in place of the one that follows from the exchange's
// words ([gmx.GasWords]); 0 for none.
type Gas struct {
	Liquidation   uint64 `toml:"liquidation" help:"fixed gas limit of a liquidation; 0 = by the exchange's words, as for all kinds"`
	Adl           uint64 `toml:"adl" help:"fixed gas limit of an auto-deleveraging; 0 = by the exchange's words"`
	AdlState      uint64 `toml:"adl_state" help:"fixed gas limit of bringing the deleveraging state up to date; 0 = by the exchange's words"`
	Order         uint64 `toml:"order" help:"fixed gas limit of an order's execution; 0 = by the exchange's words"`
	Deposit       uint64 `toml:"deposit" help:"fixed gas limit of a deposit's execution; 0 = by the exchange's words"`
	Withdrawal    uint64 `toml:"withdrawal" help:"fixed gas limit of a withdrawal's execution; 0 = by the exchange's words"`
	Shift         uint64 `toml:"shift" help:"fixed gas limit of a shift's execution; 0 = by the exchange's words"`
	GlvDeposit    uint64 `toml:"glv_deposit" help:"fixed gas limit of a GLV deposit's execution; 0 = by the exchange's words"`
	GlvWithdrawal uint64 `toml:"glv_withdrawal" help:"fixed gas limit of a GLV withdrawal's execution; 0 = by the exchange's words"`
	GlvShift      uint64 `toml:"glv_shift" help:"fixed gas limit of a GLV shift's execution; 0 = by the exchange's words"`
}

// of returns the fixed limit of a kind of job: of the setting that is named as the kind is; 0 where there is none.
func (g Gas) of(k job.Kind) uint64 {
	setting := reflect.ValueOf(g).FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, string(k)) })
	if !setting.IsValid() {
		return 0
	}
	return setting.Uint()
}

// Validate names every limit that no block would take.
func (g Gas) Validate() error {
	var problems []error
	for _, k := range job.Kinds() {
		limit := g.of(k)
		problems = append(problems, check.Refuse(limit != 0 && (limit < txm.EmptyGas || limit > txm.MaxGas),
			"the limit for a %s, %d, is neither 0 nor between %d and %d", k, limit, uint64(txm.EmptyGas),
			uint64(txm.MaxGas)))
	}
	return errors.Join(problems...)
}
