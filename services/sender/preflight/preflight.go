package preflight

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txmanager"
)

// Config is the settings of the checks.
type Config struct {
	Venue *gmx.Follower
	// FrozenRole is true when this keeper's signers hold the frozen-order role.
	FrozenRole bool
}

// Parts are its dependencies. All are needed, but for Notes.
type Parts struct {
	Node    Node
	State   State
	Head    *headtrack.Tracker
	Quotes  *Quotes
	Gate    Gate
	Clock   func() time.Time // the machine's, compared with itself alone
	Metrics *Metrics
	// Notes take the verdict of each check on an attempt; nil where nobody is to read it.
	Notes *checklog.Log
	Log   zerolog.Logger
}

// Node is what is asked of the chain.
type Node interface {
	simulator
	txmanager.Endpoints
}

// State is what is asked of the state that was derived from the chain. Nothing is written there: only the chain closes
// a job.
type State interface {
	looker
	gasState
	// Progress returns up to which block Postgres has come.
	Progress(ctx context.Context) (pg.Progress, error)
}

// Preflight is the state that the checkers of all signers share.
type Preflight struct {
	cfg    Config
	parts  Parts
	audits *audits
	gas    *gasLimits
	lags   *lags
}

// New asks nothing of anybody yet.
func New(cfg Config, p Parts) *Preflight {
	return &Preflight{cfg: cfg, parts: p, audits: &audits{state: p.State}, gas: newGasLimits(p.State, p.Clock),
		lags: &lags{state: p.State, clock: p.Clock}}
}

// Refresh reads the exchange's words on gas, and on the age of reports, again, if it is time. It is to be called while
// no job waits for it.
func (p *Preflight) Refresh(ctx context.Context) error {
	return errors.Join(p.gas.refresh(ctx), p.lags.refresh(ctx, p.parts.Quotes.Reports()))
}

// Checker makes the checker of a signer, to be closed in the end. Look is called when a task that waits for a second
// endpoint's word is to be looked at again.
func (p *Preflight) Checker(from chain.Address, look func()) *Checker {
	return &Checker{
		Parts: p.parts, audits: p.audits, venue: p.cfg.Venue, gas: p.gas, lags: p.lags, from: from,
		pending: pending{state: p.parts.State, frozenRole: p.cfg.FrozenRole, markets: p.gas.markets},
		second:  newSecondCalls(p.parts.Node, p.parts.Clock, look),
	}
}
