package preflight

import (
	"context"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmanager"
)

// kindRule is what is checked of one kind of job.
type kindRule struct {
	// pending asks our own state whether a job is still to be done.
	pending func(p pending, ctx context.Context, j job.Job) (terms, txmanager.Verdict, error)
	// fixedGas is the operator's own gas limit, 0 for none.
	fixedGas func(Gas) uint64
	// standsMs is for how long (ms, of chain time) a job stands that the planner does not say again; 0 = until our own
	// state says otherwise.
	standsMs uint64
	// silent says that no log of a transaction that succeeded names the job.
	silent bool
}

// unsaid is for how long (ms, of chain time) a deleveraging stands that the planner does not say again. It says those
// that are needed with every block: which positions they are changes with whatever is executed, and with every price.
const unsaid = 5000

// kindRules has one entry for each kind of job; a test says which is missing.
var kindRules = map[job.Kind]kindRule{
	job.Liquidation: {pending: pending.position, fixedGas: func(g Gas) uint64 { return g.Liquidation }},
	job.Adl: {pending: pending.adl, fixedGas: func(g Gas) uint64 { return g.Adl },
		standsMs: unsaid},
	job.AdlState: {pending: pending.adlState, fixedGas: func(g Gas) uint64 { return g.AdlState },
		silent: true},
	job.Order:         {pending: pending.order, fixedGas: func(g Gas) uint64 { return g.Order }},
	job.Deposit:       {pending: pending.request, fixedGas: func(g Gas) uint64 { return g.Deposit }},
	job.Withdrawal:    {pending: pending.request, fixedGas: func(g Gas) uint64 { return g.Withdrawal }},
	job.Shift:         {pending: pending.request, fixedGas: func(g Gas) uint64 { return g.Shift }},
	job.GlvDeposit:    {pending: pending.request, fixedGas: func(g Gas) uint64 { return g.GlvDeposit }},
	job.GlvWithdrawal: {pending: pending.request, fixedGas: func(g Gas) uint64 { return g.GlvWithdrawal }},
	job.GlvShift:      {pending: pending.request, fixedGas: func(g Gas) uint64 { return g.GlvShift }},
}
