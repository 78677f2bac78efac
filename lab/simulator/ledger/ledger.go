package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// Ledger is the whole store of one keeper: a lease.Store that also registers signers, a nonce.Store and nonce.Resyncer,
// and a txm.Store. Use New.
type Ledger struct {
	mu    sync.Mutex
	clock func() time.Time

	accounts map[chain.Address]*account
	lastID   int64
	intents  map[int64]*intent
	newest   map[string]*intent     // the newest attempt of each job
	byTx     map[chain.Hash]*intent // by the hashes of their transactions

	// What is unique among the intents in flight, over all signers.
	keys  map[chain.Hash]bool
	sides map[side]bool // that are being deleveraged
	slots int           // the places that liquidations take
}

// account is a signer: what Postgres keeps in the rows of the signer and its lease, and the intents that are its own.
type account struct {
	chainID       uint64
	paused        bool
	pausedFor     string
	unableUntil   time.Time // it cannot sign, as its holder said
	expectedBelow uint64    // external transactions below this number are known to have been there

	owner   lease.Owner
	token   int64
	expires time.Time // the zero time: nobody holds it
	next    uint64
	mined   uint64          // the numbers below are mined, see txm.PendingTxs
	taken   map[uint64]bool // numbers that a transaction was signed with

	queue      []*intent // queued, the most urgent first
	flying     []*intent // in flight, by nonce
	unreported []*intent // ended and not told, by id
	burnt      map[job.Lane]*burnt
}

// intent is one attempt with all that hangs on it. Its Waited is not kept.
type intent struct {
	txm.Intent
	queuedAt, endedAt time.Time
	signedAt          time.Time
	retryAfterMs      uint64
	leaving           bool // Cancel has been said
	slot, takenBack   bool // takes one of the places for liquidations, and does so again after a reorg
	txs               []txm.Tx
	receipt           *txm.Receipt // never changed once it is here
}

// New returns an empty store. Clock is the database's: leases end by it.
func New(clock func() time.Time) *Ledger {
	return &Ledger{
		clock: clock, accounts: map[chain.Address]*account{},
		intents: map[int64]*intent{}, newest: map[string]*intent{},
		byTx: map[chain.Hash]*intent{}, keys: map[chain.Hash]bool{}, sides: map[side]bool{},
	}
}

// ask makes one call: whole, and alone.
func ask[T any](l *Ledger, work func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return work()
}

// do is ask for calls that answer nothing.
func (l *Ledger) do(work func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return work()
}

// fenced makes one write under a fence. Work returns false where it found its rows not to be as the write wants them,
// and has then written nothing.
func (l *Ledger) fenced(op string, f lease.Fence, work func(a *account) bool) error {
	return l.do(func() error {
		a := l.held(f)
		switch {
		case a == nil:
			return &lease.LostError{Fence: f, Op: op}
		case !work(a):
			return &txm.RefusedError{Op: op, Why: txm.Moved}
		}
		return nil
	})
}

// held returns the account of a fence that holds, or nil.
func (l *Ledger) held(f lease.Fence) *account {
	a := l.accounts[f.Signer]
	if a == nil || a.owner.ID != f.Owner || a.token != f.Token || !a.expires.After(l.clock()) {
		return nil
	}
	return a
}

// Register makes a signer known, with a lease that nobody holds. A signer that is known already is left as it is; one
// that is known for another chain is an error.
func (l *Ledger) Register(_ context.Context, signer chain.Address, chainID uint64) error {
	return l.do(func() error {
		if a, known := l.accounts[signer]; known {
			if a.chainID != chainID {
				return fmt.Errorf("signer %s belongs to chain %d here, not to %d", signer, a.chainID, chainID)
			}
			return nil
		}
		l.accounts[signer] = &account{chainID: chainID, owner: lease.Owner{ID: uuid.Nil, Label: "nobody"},
			taken: map[uint64]bool{}}
		return nil
	})
}
