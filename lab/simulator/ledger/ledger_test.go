package ledger_test

import (
	"context"
	"testing"
	"time"

	"perpkeeper/lab/simulator/ledger"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/lease/leasetest"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/nonce/noncetest"
	"perpkeeper/pkg/txmgr/txm/txmtest"
)

const testChain = 56

func withSigner(t *testing.T) (*ledger.Ledger, chain.Address) {
	t.Helper()
	l, signer := ledger.New(time.Now), chain.Address{0xaa}
	if err := l.Register(t.Context(), signer, testChain); err != nil {
		t.Fatal(err)
	}
	return l, signer
}

// NON-1, NON-2, NON-5: as Postgres.
func TestLeasesConform(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) (lease.Store, chain.Address) { return withSigner(t) })
}

// NON-6: as Postgres.
func TestNoncesConform(t *testing.T) {
	noncetest.Run(t, func(t *testing.T) (nonce.Store, lease.Store, chain.Address) {
		l, signer := withSigner(t)
		return l, l, signer
	})
}

// NON-13, NON-14, LIQ-6: as Postgres.
func TestIntentsConform(t *testing.T) {
	txmtest.Run(t, func(t *testing.T) txmtest.Stores {
		l := ledger.New(time.Now)
		return txmtest.Stores{
			Leases: l, Nonces: l, Intents: l,
			Register: func(ctx context.Context, signer chain.Address) error {
				return l.Register(ctx, signer,
					testChain)
			},
		}
	})
}
