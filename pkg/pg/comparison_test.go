package pg_test

import (
	"fmt"
	"testing"
	"time"

	"perpkeeper/pkg/perp"
)

// The transaction that shares what it sees waits for those that compare the last tables, for longer than a silent
// client may hold a transaction open.
func TestComparisonWaitsForItsSlowestTable(t *testing.T) {
	url, _, copied := copiedHistory(t)
	cfg := configFor(url)
	cfg.IdleInTransactionTimeout = 100 * time.Millisecond
	hurried := openConfig(t, cfg)
	first, second := perp.Tables()[0], perp.Tables()[1]
	for _, order := range [][2]perp.Table{{first, second}, {second, first}} { // either may be the sharing one's
		sooner := hold(t, url, fmt.Sprintf("LOCK state_g2.%s", order[0]))
		later := hold(t, url, fmt.Sprintf("LOCK state_g2.%s", order[1]))
		ended := make(chan error, 1)
		go func() {
			c, err := hurried.Compare(t.Context(), 1, copied, false)
			if err == nil && (!c.SamePlace() || len(c.Differing()) > 0) {
				err = fmt.Errorf("differing %v", c.Differing())
			}
			ended <- err
		}()
		awaitTrue(t, url, "(SELECT count(*) FROM pg_locks WHERE NOT granted) = 2")
		sooner()
		execute(t, url, "SELECT pg_sleep(0.5)")
		later()
		must(t, <-ended)
	}
}
