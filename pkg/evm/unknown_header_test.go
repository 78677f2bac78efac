package evm

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common"
)

// A header that does not hash to what the node says is not believed, whoever gives it; where every endpoint does,
// readiness says what to do, and it is over when they give another.
func TestUnknownHeaders(t *testing.T) {
	for _, unknown := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			nodes, truth := fakes(2, 60)
			client, _ := dialFakes(t, nil, nodes...)
			forked := append(fakeChain(nil), truth...)
			block := *truth[59]
			block.json = maps.Clone(block.json)
			block.json["hash"] = common.Hash{0xf0, 0x4c}
			forked[59] = &block
			for _, n := range nodes[:unknown] {
				n.chain = forked
			}
			for range 3 {
				head, err := client.Head(t.Context())
				if (unknown == 2) != (err != nil) || err == nil && head != truth.ref(59) {
					t.Fatalf("head %+v, %v", head, err)
				}
			}
			err := client.Health()
			says := strings.Contains(fmt.Sprint(err), "a build that knows the chain's fork")
			if says != (unknown == 2) {
				t.Errorf("health: %v", err)
			}
			for _, n := range nodes {
				n.chain = truth
			}
			if head, err := client.Head(t.Context()); err != nil || head != truth.ref(59) || client.Health() != nil {
				t.Errorf("after it head %+v, %v, health %v", head, err, client.Health())
			}
		})
	}
}
