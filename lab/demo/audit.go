package demo

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/audit"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/tier/execution/ledger"
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
func (s *Stack) Audit(ctx context.Context, node *evm.Client, from, to uint64) (rows []ledger.Row, err error) {
	var cfg audit.Config
	if cfg.Roster, err = s.roster(); err != nil {
		return nil, err
	}
	if cfg.Venue, err = gmx.Locate(ctx, node, s.Devnet.Contracts["dataStore"]); err != nil {
		return nil, err
	}
	_, err = audit.Run(ctx, node, cfg, from, to, func(r ledger.Row) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading from the chain who executed what: %w", err)
	}
	return rows, nil
}

// lossRatios are what a transaction costs that comes too late, in thousandths of what one costs that comes in time, for
// want of losers to measure by: as measured on the devnet's contracts (TestLossRatio of test/bench, TestGas of the
// exchange), orders as the mean of three kinds. Whoever is second with an AdlState does the same again.
var lossRatios = ledger.Rates{
	job.Liquidation:   441,
	job.Adl:           519,
	job.AdlState:      1000,
	job.Order:         416,
	job.Deposit:       604,
	job.Withdrawal:    601,
	job.Shift:         458,
	job.GlvDeposit:    489,
	job.GlvWithdrawal: 491,
	job.GlvShift:      514,
}
