// Package txstoretest gives tests a sender process in the midst of its work.
package txstoretest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// ChainID is the chain that the signers of tests belong to.
const ChainID = 56

// Holder is one sender process that owns the only signer of a database, with queued intents.
type Holder struct {
	Address string // of the database
	DB      *pg.DB
	Fence   lease.Fence
	Intents []int64
	Kind    job.Kind // of the jobs that are claimed
}

// New returns the holder of a fresh database, with so many orders queued.
func New(t *testing.T, jobs int) Holder {
	t.Helper()
	d := Holder{Address: pgtest.URL(t), Kind: job.Order}
	d.DB = Open(t, d.Address, "sender")
	signer := Register(t, d.DB)
	d.Fence = Acquire(t, d.DB, signer, time.Minute)
	intents := txstore.NewIntents(d.DB)
	for i := range jobs {
		k := chain.Hash{byte(i + 1)}
		j := job.Job{ID: job.OrderID(k, 1), Kind: job.Order, Key: k, Class: job.ClassMarketOrder, DueSinceMs: uint64(i),
			Signer: signer}
		if _, err := intents.Enqueue(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		heads, err := intents.Heads(t.Context(), signer, txm.Pick{Except: d.Intents, Limit: 1})
		if err != nil || len(heads) != 1 {
			t.Fatal(heads, err)
		}
		d.Intents = append(d.Intents, heads[0].ID)
	}
	return d
}

// Open opens a database as one sender process, under the given application name.
func Open(t *testing.T, address, application string) *pg.DB {
	t.Helper()
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL(address)
	db, err := pg.Open(t.Context(), cfg, application)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// Register makes the signer of tests known to a database.
func Register(t *testing.T, db *pg.DB) chain.Address {
	t.Helper()
	signer := chain.Address{0xaa}
	if err := txstore.NewLeases(db).Register(t.Context(), signer, ChainID); err != nil {
		t.Fatal(err)
	}
	return signer
}

// Registrar makes signers known to a database, as the suites of stores ask for it.
func Registrar(db *pg.DB) func(context.Context, chain.Address) error {
	return func(ctx context.Context, signer chain.Address) error {
		return txstore.NewLeases(db).Register(ctx, signer, ChainID)
	}
}

// Acquire takes a signer's lease for a new process.
func Acquire(t *testing.T, db *pg.DB, signer chain.Address, ttl time.Duration) lease.Fence {
	t.Helper()
	f, err := txstore.NewLeases(db).Acquire(t.Context(), signer, lease.NewOwner(t.Name()), ttl)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Claim is the claim of an intent at a number.
func (d Holder) Claim(intent int64, n, cursor uint64) txm.Batch {
	tx := txm.SignedTx{Nonce: n, Hash: chain.Keccak256(fmt.Append(nil, intent, n)), Raw: []byte{1}, Gas: 1, Tip: 1,
		Cap: 1}
	return txm.Batch{Claims: []txm.Claim{{Intent: intent, Kind: d.Kind, Tx: tx}}, Cursor: cursor,
		Limits: txm.Limits{Signer: 16, Liquidations: 10}}
}

// MustClaim claims an intent at a number.
func (d Holder) MustClaim(t *testing.T, intent int64, n, cursor uint64) txm.SignedTx {
	t.Helper()
	c := d.Claim(intent, n, cursor)
	if err := txstore.NewIntents(d.DB).Claim(t.Context(), d.Fence, c); err != nil {
		t.Fatal(err)
	}
	return c.Claims[0].Tx
}
