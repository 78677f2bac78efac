package keeperctl

import (
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
)

// breakLease runs the command, confirmed or not.
func (b *bench) breakLease(yes bool) string {
	b.t.Helper()
	var out strings.Builder
	own := defaultConfig().Own
	own.Yes = yes
	if err := leases(b.t.Context(), b.db, own, []string{"break", b.signer.Hex()}, printer{Writer: &out}); err != nil {
		return out.String() + "error: " + err.Error()
	}
	return out.String()
}

// A lease is broken by nobody who has not confirmed it; who has it is shown first.
func TestLeaseBreakAsks(t *testing.T) {
	b := newBench(t)
	if got := b.breakLease(false); !strings.Contains(got, "is not known here") {
		t.Errorf("an unknown signer: %s", got)
	}
	f := b.attend()
	if got := b.breakLease(false); !strings.Contains(got, "nothing was changed") ||
		!strings.Contains(got, "held by sender-a") || !strings.Contains(got, "HOLDER LIVES") {
		t.Error(got)
	}
	b.must(txstore.NewLeases(b.db).Renew(t.Context(), f, time.Minute))
	if got := b.breakLease(true); !strings.Contains(got, "broken: the token is 2") {
		t.Error(got)
	}
	if err := txstore.NewLeases(b.db).Renew(t.Context(), f, time.Minute); !lease.Lost(err) {
		t.Errorf("the former holder renews: %v", err)
	}
	if got := b.breakLease(true); !strings.Contains(got, "nobody has the lease") {
		t.Error(got)
	}
}

// A lease that was written ahead of the database's clock is shown as one.
func TestLeaseWrittenAheadIsShown(t *testing.T) {
	b := newBench(t)
	b.attend()
	pgtest.Tamper(t, b.address, `UPDATE keeper.signer_lease SET expires_at = expires_at + interval '1 hour',
		updated_at = updated_at + interval '1 hour'`)
	b.want("list", "THE DATABASE'S CLOCK WENT BACK", "keeperctl lease break SIGNER")
	if got := b.breakLease(false); !strings.Contains(got, "written 1h0m0s ahead") &&
		!strings.Contains(got, "written 59m") {
		t.Error(got)
	}
}
