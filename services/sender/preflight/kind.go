package preflight

import (
	"context"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txmanager"
)

// kindRule is what is checked of one kind of job.
type kindRule struct {
	// pending decides by our own state's rows whether a job is still to be done.
	pending func(p pending, ctx context.Context, read pg.Rows, j job.Job) (terms, txmanager.Verdict, error)
	// keys are those of the rows that pending asks for, as far as the job names them. What it asks for beside them
	// takes another round trip.
	keys func(job.Job) pg.Keys
	// standsMs is for how long (ms, of chain time) a job stands that the planner does not say again; 0 = until our own
	// state shows otherwise.
	standsMs uint64
	// silent is true when no log of a transaction that succeeded names the job.
	silent bool
}

// unpublishedMs is for how long (ms, of chain time) a deleveraging stands that the planner does not publish again. It
// publishes those that are needed with every block: which positions they are changes with whatever is executed, and
// with every price.
const unpublishedMs = 5000

// keyRules are those of every kind whose key names the same: what its job needs is there, or it is not.
var keyRules = map[job.KeyOf]kindRule{
	job.PositionKey: {pending: pending.position, keys: positionKeys},
	job.OrderKey:    {pending: pending.order, keys: orderKeys},
	job.RequestKey:  {pending: pending.request, keys: requestKeys},
}

// kindRules are those of kinds of which more is to be asked.
var kindRules = map[job.Kind]kindRule{
	job.Adl:      {pending: pending.adl, keys: adlKeys, standsMs: unpublishedMs},
	job.AdlState: {pending: pending.adlState, keys: adlStateKeys, silent: true},
}

// ruleOf is what is checked of a kind; false for one that this build does not know.
func ruleOf(k job.Kind) (r kindRule, known bool) {
	if r, own := kindRules[k]; own {
		return r, true
	}
	r, known = keyRules[k.Names()]
	if _, is := k.Cancels(); is {
		r.pending = pending.cancel
	}
	return r, known
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
	return pg.Keys{Orders: []chain.Hash{j.Key}, Parameters: []chain.Hash{perp.DisabledKey(j.Market)},
		Positions: []chain.Hash{perp.PositionKey(j.Account, j.Market, j.Collateral, j.IsLong)}}
}

func requestKeys(j job.Job) pg.Keys {
	return pg.Keys{Requests: []chain.Hash{j.Key}, Parameters: []chain.Hash{perp.DisabledKey(j.Market)}}
}
