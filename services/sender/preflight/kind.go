package preflight

import (
	"context"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmanager"
)

// kindRule is what is checked of one kind of job.
type kindRule struct {
	// pending asks our own state whether a job is still to be done.
	pending func(p pending, ctx context.Context, j job.Job) (terms, txmanager.Verdict, error)
	// keys are those of the rows that pending asks for, as far as the job names them. What it asks for beside them
	// takes another round trip.
	keys func(job.Job) pg.Keys
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
	job.Liquidation: {pending: pending.position, keys: positionKeys,
		fixedGas: func(g Gas) uint64 { return g.Liquidation }},
	job.Adl: {pending: pending.adl, keys: adlKeys, fixedGas: func(g Gas) uint64 { return g.Adl },
		standsMs: unsaid},
	job.AdlState: {pending: pending.adlState, keys: adlStateKeys, fixedGas: func(g Gas) uint64 { return g.AdlState },
		silent: true},
	job.Order:      {pending: pending.order, keys: orderKeys, fixedGas: func(g Gas) uint64 { return g.Order }},
	job.Deposit:    {pending: pending.request, keys: requestKeys, fixedGas: func(g Gas) uint64 { return g.Deposit }},
	job.Withdrawal: {pending: pending.request, keys: requestKeys, fixedGas: func(g Gas) uint64 { return g.Withdrawal }},
	job.Shift:      {pending: pending.request, keys: requestKeys, fixedGas: func(g Gas) uint64 { return g.Shift }},
	job.GlvDeposit: {pending: pending.request, keys: requestKeys, fixedGas: func(g Gas) uint64 { return g.GlvDeposit }},
	job.GlvWithdrawal: {pending: pending.request, keys: requestKeys,
		fixedGas: func(g Gas) uint64 { return g.GlvWithdrawal }},
	job.GlvShift: {pending: pending.request, keys: requestKeys, fixedGas: func(g Gas) uint64 { return g.GlvShift }},
}

func positionKeys(j job.Job) pg.Keys { return pg.Keys{Positions: []chain.Hash{j.Key}} }

func adlKeys(j job.Job) pg.Keys {
	return pg.Keys{Positions: []chain.Hash{j.Key}, Values: []chain.Hash{adlEnabled(j)}}
}

func adlStateKeys(j job.Job) pg.Keys { return pg.Keys{Values: []chain.Hash{adlEnabled(j)}} }

// adlEnabled is the key of the exchange's word on the side of a job.
func adlEnabled(j job.Job) chain.Hash {
	return perp.MarketValueKey(perp.AdlEnabled, j.Market.Hash(), chain.Address{}, j.IsLong).Key
}

// orderKeys are those of an order and of the position that it acts on, as the job describes it.
func orderKeys(j job.Job) pg.Keys {
	return pg.Keys{Orders: []chain.Hash{j.Key},
		Positions: []chain.Hash{perp.PositionKey(j.Account, j.Market, j.Collateral, j.IsLong)}}
}

func requestKeys(j job.Job) pg.Keys { return pg.Keys{Requests: []chain.Hash{j.Key}} }
