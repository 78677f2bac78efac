package pg_test

import (
	"testing"

	"perpkeeper/pkg/pg/pgtest"
)

// The server compiles no statement, however expensive it takes it for.
func TestServerCompilesNothing(t *testing.T) {
	if jit, err := pgtest.DB(t).Setting(t.Context(), "jit"); err != nil || jit != "off" {
		t.Errorf("jit is %q, %v", jit, err)
	}
}
