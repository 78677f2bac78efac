package demo

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/audit"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/execution/ledger"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/tier"
)

// Node opens a connection to the stack's chain, for whoever looks on from outside.
func (s *Stack) Node(ctx context.Context) (*evm.Client, error) {
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(s.Devnet.RPC)}
	return evm.Dial(ctx, s.Devnet.ChainID, cfg, s.log, evm.NewMetrics(prometheus.NewRegistry()))
}

// roster reports which keeper a signer belongs to.
func (s *Stack) roster() (tier.Roster, error) {
	roster := tier.Roster{}
	for _, k := range s.Keepers {
		signers, err := k.signers()
		if err != nil {
			return nil, err
		}
		for _, signer := range signers {
			roster[signer.Address] = k.Tier
		}
	}
	return roster, nil
}

// Audit reads from the chain alone who executed which jobs in a range of blocks. Only jobs that were executed there, or
// should have been, have rows.
func (s *Stack) Audit(ctx context.Context, node audit.Chain, from, to uint64) (rows []ledger.Row, err error) {
	cfg := audit.DefaultConfig()
	if cfg.Roster, err = s.roster(); err != nil {
		return nil, err
	}
	cfg.Venue = s.Devnet.venue()
	_, err = audit.Run(ctx, node, cfg, from, to, nil, func(r ledger.Row) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading from the chain who executed what: %w", err)
	}
	return rows, nil
}

// venue names the exchange's contracts.
func (d Devnet) venue() gmx.Config {
	c := d.Contracts
	return gmx.Config{
		EventEmitter: c["eventEmitter"], DataStore: c["dataStore"], OrderHandler: c["orderHandler"],
		LiquidationHandler: c["liquidationHandler"],
		AdlHandler:         c["adlHandler"], DepositHandler: c["depositHandler"],
		WithdrawalHandler: c["withdrawalHandler"], ShiftHandler: c["shiftHandler"],
		GlvDepositHandler: c["glvDepositHandler"], GlvWithdrawalHandler: c["glvWithdrawalHandler"],
		GlvShiftHandler: c["glvShiftHandler"],
	}
}

// lossRatios are what a transaction costs that comes too late, for want of losers to measure by.
var lossRatios = func() ledger.Rates {
	rates := ledger.Rates{}
	for _, kind := range job.Kinds() {
		rates[kind] = ledger.Ratio(gmx.LossRatio(kind))
	}
	return rates
}()
