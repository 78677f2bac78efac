package keeperctl

import (
	"io"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
)

// breakLease runs the command as somebody who writes an answer, or as a script.
func (b *bench) breakLease(answer, yes string) string {
	b.t.Helper()
	var out strings.Builder
	var in io.Reader = strings.NewReader(answer)
	d := leaseBreak{leases: txstore.NewLeases(b.db), by: "ann", patience: time.Minute, in: in, out: &out}
	if err := d.run(b.t.Context(), b.signer.Hex(), yes); err != nil {
		return out.String() + "error: " + err.Error()
	}
	return out.String()
}

// A lease is broken by nobody who has not seen who has it, and written the signer's address twice.
func TestLeaseBreakAsks(t *testing.T) {
	b := newBench(t)
	if got := b.breakLease("", ""); !strings.Contains(got, "is not known here") {
		t.Errorf("an unknown signer: %s", got)
	}
	f := b.attend()
	for name, c := range map[string]struct{ answer, yes string }{
		"nothing": {"", ""}, "an empty line": {"\n", ""}, "yes": {"yes\n", ""}, "for scripts": {"", "yes"},
		"another signer": {"0x00000000000000000000000000000000000000aa\n", ""},
	} {
		if got := b.breakLease(c.answer, c.yes); !strings.Contains(got, "nothing was changed") ||
			!strings.Contains(got, "held by sender-a") || !strings.Contains(got, "HOLDER LIVES") {
			t.Errorf("%s: %s", name, got)
		}
		b.must(txstore.NewLeases(b.db).Renew(t.Context(), f, time.Minute))
	}
	if got := b.breakLease(strings.ToLower(b.signer.Hex())+"\n", ""); !strings.Contains(got, "broken: the token is 2") {
		t.Error(got)
	}
	if err := txstore.NewLeases(b.db).Renew(t.Context(), f, time.Minute); !lease.Lost(err) {
		t.Errorf("the former holder renews: %v", err)
	}
	if got := b.breakLease("", b.signer.Hex()); !strings.Contains(got, "nobody has the lease") {
		t.Error(got)
	}
	b.attend()
	if got := b.breakLease("", b.signer.Hex()); !strings.Contains(got, "broken: the token is 4") {
		t.Errorf("a script: %s", got)
	}
}

// A lease that was written ahead of the database's clock is shown as one.
func TestLeaseWrittenAheadIsShown(t *testing.T) {
	b := newBench(t)
	b.attend()
	pgtest.Tamper(t, b.address, `UPDATE keeper.signer_lease SET expires_at = expires_at + interval '1 hour',
		updated_at = updated_at + interval '1 hour'`)
	b.want("list", "THE DATABASE'S CLOCK WENT BACK", "keeperctl lease break SIGNER")
	if got := b.breakLease("", ""); !strings.Contains(got, "written 1h0m0s ahead") &&
		!strings.Contains(got, "written 59m") {
		t.Error(got)
	}
}
