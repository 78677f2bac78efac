package txstore_test

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/lease/leasetest"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/nonce/noncetest"
	"perpkeeper/pkg/txmgr/txm/txmtest"
)

// withSigner returns a fresh database and a signer in it.
func withSigner(t *testing.T) (*pg.DB, chain.Address) {
	t.Helper()
	db := pgtest.DB(t)
	return db, txstoretest.Register(t, db)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NON-1, NON-2, NON-3, NON-5, NON-12.
func TestLeasesConform(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) (lease.Store, chain.Address) {
		db, signer := withSigner(t)
		return txstore.NewLeases(db), signer
	})
}

// NON-6.
func TestNoncesConform(t *testing.T) {
	noncetest.Run(t, func(t *testing.T) (nonce.Store, lease.Store, chain.Address) {
		db, signer := withSigner(t)
		return txstore.NewLeases(db), txstore.NewLeases(db), signer
	})
}

// NON-7, NON-8, NON-13, NON-14, LIQ-6, and S1 to S13 where they concern intents.
func TestIntentsConform(t *testing.T) {
	txmtest.Run(t, func(t *testing.T) txmtest.Stores {
		url := pgtest.URL(t)
		noStrays(t, url)
		db := txstoretest.Open(t, url, "sender")
		return txmtest.Stores{Leases: txstore.NewLeases(db), Nonces: txstore.NewLeases(db),
			Intents: txstore.NewIntents(db), Register: txstoretest.Registrar(db)}
	})
}
