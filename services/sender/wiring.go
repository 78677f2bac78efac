package sender

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/txmgr/txmanager"
	"perpkeeper/services/sender/preflight"
	"perpkeeper/services/sender/turns"
)

func (s *Sender) newManager() *txmanager.Manager {
	settings := s.cfg.Sender
	return txmanager.New(txmanager.Config{
		ChainID: s.cfg.Keeper.ChainID, Owner: s.owner, TTL: settings.LeaseTTL, Batch: settings.Batch,
		MaxWait: settings.MaxJobAge, Cooldown: settings.Cooldown, Shared: s.cfg.Tier.Enabled,
		Private: txmanager.Private{Endpoints: len(s.cfg.Chain.PrivateURLs) > 0, Only: settings.privateLanes(),
			Deadline: settings.PrivateDeadline},
	}, txmanager.Parts{
		Node: s.node, Leases: s.leases, Nonces: s.nonces, Intents: s.intents, Heads: s.headTracker,
		Limits: s.limits(), Turns: s.turns, Open: s.open, Results: s.results, Notice: s.notices.set,
		Metrics: s.metrics.Txs, Log: s.log,
	})
}

// open begins the work of one signer.
func (s *Sender) open(account chain.Address, look func()) txmanager.Work {
	check := s.preflight.Checker(account, look)
	return txmanager.Work{Pipeline: pipeline{check, s.turns}, Judge: check, Idle: s.preflight.Refresh,
		Close: check.Close}
}

// pipeline is the way of one signer's jobs to their claim.
type pipeline struct {
	*preflight.Checker
	turns *turns.Tracker
}

// Stages lead there: what is known is of now, the window is ours, and the job is still to be done.
func (p pipeline) Stages(signer txmanager.TermState) []txmanager.Stage {
	return []txmanager.Stage{
		p.Noted(checklog.Gate, p.Gate.Stage(signer.Held, signer.Reconciled)),
		p.Noted(checklog.Turn, p.turns.Stage()),
		p.turns.Observe(p.Stage()), // still pending, fresh reports, gas, a simulated call
	}
}

// limits are what holds this sender back, by how volatile the markets are.
func (s *Sender) limits() *limits {
	return &limits{settings: s.cfg.Sender, mode: s.quotes.Mode}
}
