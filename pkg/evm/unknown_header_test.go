package evm

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common"
)

// A header that no endpoint's word and no hash of ours agree on, alike for two hosts, is a fork of the chain: nobody is
// excluded for it, nothing is believed, and one line says what to do. A single endpoint with such a header lies.
func TestUnknownHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, unknown int
		fork           bool
	}{
		"all of three": {3, 3, true}, "both": {2, 2, true}, "one of three": {3, 1, false}, "one of two": {2, 1, false},
		"the only one": {1, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(c.nodes, 60)
				client, _ := dialFakes(t, nil, nodes...)
				forked := append(fakeChain(nil), truth...)
				block := *truth[59]
				block.json = maps.Clone(block.json)
				block.json["hash"] = common.Hash{0xf0, 0x4c}
				forked[59] = &block
				for _, n := range nodes[:c.unknown] {
					n.chain = forked
				}
				for range 3 {
					head, err := client.Head(t.Context())
					if all := c.unknown == c.nodes; all != (err != nil) || err == nil && head != truth.ref(59) {
						t.Fatalf("head %+v, %v", head, err)
					}
				}
				err := client.Health()
				if says := err != nil &&
					strings.Contains(err.Error(), "a build that knows the chain's fork"); says != c.fork {
					t.Errorf("health: %v", err)
				}
				for i := range nodes {
					for _, x := range client.Endpoints()[i].Excluded {
						if c.fork && x.Reason == ReasonLied {
							t.Errorf("endpoint %d is excluded: %+v", i, x)
						}
					}
				}
				for _, n := range nodes {
					n.chain = truth
				}
				if !c.fork {
					return
				}
				if head, err := client.Head(t.Context()); err != nil || head != truth.ref(59) ||
					client.Health() != nil {
					t.Errorf("after it head %+v, %v, health %v", head, err, client.Health())
				}
			})
		})
	}
}
