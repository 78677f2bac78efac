package evm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// calls has a node call itself something.
func calls(software string) script {
	return func(_ context.Context, method string, _ []json.RawMessage) (any, *fault, bool) {
		return software, nil, method == methodSoftware
	}
}

// An endpoint that will miss a fork is named from a fortnight before it, and used for all until then; once the fork has
// come it comes last.
func TestEndpointsThatMissAFork(t *testing.T) {
	const old, ready, unknown = "Geth/v1.8.1-0a1b2c3d/linux-amd64/go1.25", "Geth/v1.8.2/linux", "erigon/2.60/linux"
	for name, c := range map[string]struct {
		until    time.Duration // the fork
		software [2]string
		purpose  Purpose
		reason   Reason
		asked    int // of the second, for its software
	}{
		"nothing is near":        {15 * 24 * time.Hour, [2]string{ready, old}, "", "", 0},
		"in a fortnight":         {14 * 24 * time.Hour, [2]string{ready, old}, AfterFork, ReasonMissesFork, 1},
		"all are ready":          {time.Hour, [2]string{ready, ready}, "", "", 1},
		"nothing is known of it": {time.Hour, [2]string{ready, unknown}, "", "", 1},
		"it has come":            {-time.Hour, [2]string{ready, old}, Everything, ReasonMissesFork, 1},
		"the other is unknown":   {-time.Hour, [2]string{unknown, old}, Everything, ReasonMissesFork, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, _ := fakes(2, 60)
				for i, n := range nodes {
					n.inject(calls(c.software[i]))
				}
				client, _ := dialFakes(t, func(cfg *Config) {
					cfg.Forks = []string{fmt.Sprintf("Next %d bsc>=1.8.2", time.Now().Add(c.until).Unix())}
				}, nodes...)
				time.Sleep(client.pool.cfg.ProbeInterval + time.Second)
				synctest.Wait()
				first, second := client.Endpoints()[0], client.Endpoints()[1]
				if len(first.Excluded) > 0 && c.reason == "" || (len(second.Excluded) > 0) != (c.reason != "") {
					t.Fatalf("excluded: %+v and %+v", first.Excluded, second.Excluded)
				}
				if c.reason != "" && !slices.ContainsFunc(second.Excluded, func(x Exclusion) bool {
					return x.Purpose == c.purpose && x.Reason == c.reason && strings.Contains(x.Detail, "fork Next of")
				}) {
					t.Errorf("excluded for %+v", second.Excluded)
				}
				if used := client.pool.public[1].usable(Everything) == good; used != (c.purpose != Everything) {
					t.Errorf("it is used as any other: %t", used)
				}
				if asked := nodes[1].count(methodSoftware); asked != c.asked {
					t.Errorf("it was asked for its software %d times", asked)
				}
			})
		})
	}
}
