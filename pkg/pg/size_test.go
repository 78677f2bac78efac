package pg_test

import (
	"testing"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// All generations count, as the operators' role sees them.
func TestStateBytes(t *testing.T) {
	before, err := pgtest.OpenAs(t, pg.RoleOps, granted(t)).StateBytes(t.Context())
	if err != nil || before == 0 {
		t.Errorf("%d bytes, %v", before, err)
	}
	address := pgtest.URL(t)
	execute(t, address, `CREATE SCHEMA state_g9;
		CREATE TABLE state_g9.position AS SELECT generate_series(1, 10000) AS n`)
	if after, err := open(t, address).StateBytes(t.Context()); err != nil || after <= before {
		t.Errorf("%d bytes with another generation, %d before; %v", after, before, err)
	}
}
