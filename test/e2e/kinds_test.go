package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"perpkeeper/pkg/job"
)

// auditPause is the least time between two readings of the whole chain.
const auditPause = 5 * time.Second

// PIPE-5, TIER-13: every kind of job is found, sent and executed: the chain shows each of them, executed by a signer of
// the keeper.
func TestEveryKindOfJob(t *testing.T) {
	long(t)
	k := start(t, nil)
	node, err := k.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	var asked time.Time
	var missing error
	executed := map[job.Kind]int{}
	k.await("every kind of job executed", func(ctx context.Context) error {
		if time.Since(asked) < auditPause {
			return missing
		}
		asked = time.Now()
		head, err := node.Head(ctx)
		if err != nil {
			return err
		}
		rows, err := k.Audit(ctx, node, k.Devnet.Block, head.Number)
		if err != nil {
			return err
		}
		clear(executed)
		for _, r := range rows {
			if r.Winner != nil && r.Winner.Tier == k.Tier {
				executed[r.Kind]++
			}
		}
		missing = nil
		for _, kind := range job.Kinds() {
			if executed[kind] == 0 {
				missing = fmt.Errorf("no %s executed, of others %v", kind, executed)
			}
		}
		return missing
	})
	t.Logf("executed: %v", executed)
	k.finish()
}
