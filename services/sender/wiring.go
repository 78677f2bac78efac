package sender

import (
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/txmgr/txmanager"
)

// confirmTimeout is after how long without a receipt people are told; the transaction goes on being broadcast.
const confirmTimeout = 10 * time.Second

func (s *Sender) newManager() *txmanager.Manager {
	settings := s.cfg.Sender
	return txmanager.New(txmanager.Config{
		ChainID: s.cfg.Keeper.ChainID, Owner: s.owner, TTL: settings.LeaseTTL, Batch: settings.Batch,
		MaxWait: settings.MaxJobAge, Cooldown: settings.Cooldown, ConfirmTimeout: confirmTimeout,
		Private: txmanager.Private{Endpoints: len(s.cfg.Chain.PrivateURLs) > 0, Only: settings.privateLanes(),
			Deadline: settings.PrivateDeadline},
		Shared: s.cfg.Tier.Enabled,
	}, txmanager.Parts{
		Node: s.node, Leases: s.leases, Nonces: s.nonces, Intents: s.intents, Heads: s.headTracker, Clock: s.clock,
		Limits: s.limits(), Turns: s.turns, Open: s.open, Results: s.results, Notice: s.notices.set,
		Metrics: s.metrics.Txs, Log: s.log,
	})
}

// open begins the work of one signer. Its pipeline reads aloud.
func (s *Sender) open(account chain.Address, look func()) txmanager.Work {
	check := s.preflight.Checker(account, look)
	return txmanager.Work{
		Pipeline: func(signer txmanager.TermState) []txmanager.Stage {
			return []txmanager.Stage{ // what is known is of now, the window is ours, and the job is still to be done
				check.Noted(checklog.Gate, s.gate().Stage(signer.Held, signer.Reconciled)),
				check.Noted(checklog.Turn, s.turns.Stage()),
				s.turns.Observe(check.Stage()), // still pending, fresh reports, gas, a simulated call
			}
		},
		Read:    check.Read,
		Recheck: s.gate().Recheck(check.Run),
		Judge:   check,
		Idle:    s.preflight.Refresh,
		Close:   check.Close,
	}
}

// limits are what holds this sender back, by how volatile the markets are.
func (s *Sender) limits() *limits {
	return &limits{settings: s.cfg.Sender, mode: s.quotes.Mode}
}
