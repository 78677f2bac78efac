package pg_test

import (
	"context"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/lease/leasetest"
	"perpkeeper/pkg/nonce"
	"perpkeeper/pkg/nonce/noncetest"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/txm/txmtest"
)

const testChain = 56

// withSigner returns a fresh database and a signer in it.
func withSigner(t *testing.T) (*pg.DB, chain.Address) {
	t.Helper()
	db, signer := pgtest.DB(t), chain.Address{0xaa}
	if err := db.Leases().Register(t.Context(), signer, testChain); err != nil {
		t.Fatal(err)
	}
	return db, signer
}

// NON-1, NON-2, NON-3, NON-5, NON-12.
func TestLeasesConform(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) (lease.Store, chain.Address) {
		db, signer := withSigner(t)
		return db.Leases(), signer
	})
}

// NON-6.
func TestNoncesConform(t *testing.T) {
	noncetest.Run(t, func(t *testing.T) (nonce.Store, lease.Store, chain.Address) {
		db, signer := withSigner(t)
		return db.Leases(), db.Leases(), signer
	})
}

// NON-7, NON-8, NON-13, NON-14, LIQ-6, and S1 to S13 where they concern intents.
func TestIntentsConform(t *testing.T) {
	txmtest.Run(t, func(t *testing.T) txmtest.Stores {
		url := pgtest.URL(t)
		noStrays(t, url)
		db := open(t, url)
		return txmtest.Stores{Leases: db.Leases(), Nonces: db.Leases(), Intents: db.Intents(), Register: registrar(db)}
	})
}

// registrar makes signers known to a database.
func registrar(db *pg.DB) func(context.Context, chain.Address) error {
	return func(ctx context.Context, signer chain.Address) error {
		return db.Leases().Register(ctx, signer, testChain)
	}
}
