package evm

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
)

// madeUpHead makes a node name a newest block so many blocks and seconds ahead. Its hash is right, and nobody else has
// it.
func madeUpHead(truth fakeChain, at int, blocks, seconds uint64) script {
	header := types.CopyHeader(truth[at].header)
	header.Number.SetUint64(header.Number.Uint64() + blocks)
	header.Time += seconds
	shown := asMap(header)
	shown["transactions"] = []string{}
	return func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
		return shown, nil, method == methodBlockAt && unquote(params[0]) == "latest"
	}
}

// A matrix of made-up heads: nobody is given one, whoever tells it is excluded for heads, and the honest are not.
func TestMadeUpHeadsAreNotBelieved(t *testing.T) {
	for _, nodes := range []int{2, 3} {
		for name, by := range map[string]struct{ blocks, seconds uint64 }{
			"ten minutes": {100, 600}, "no time, a thousand blocks": {1000, 0}, "an hour and one block": {1, 3600},
			"for ever": {1 << 40, 1 << 33},
		} {
			t.Run(fmt.Sprintf("%s, one of %d", name, nodes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fakes, truth := fakes(nodes, 60)
					for _, n := range fakes {
						n.setHead(50)
					}
					c, _ := dialFakes(t, nil, fakes...)
					heads := c.Heads(t.Context())
					prefer(c.pool.public[0])
					fakes[0].inject(madeUpHead(truth, 50, by.blocks, by.seconds))
					for n := 51; n < 59; n++ {
						for _, f := range fakes[1:] {
							f.setHead(n)
						}
						time.Sleep(time.Second)
						if head, err := c.Head(t.Context()); err != nil || head != truth.ref(n) {
							t.Fatalf("head %+v, %v", head, err)
						}
						if head := <-heads; head.Number > uint64(n) {
							t.Fatalf("delivered %+v", head)
						}
					}
					if r := excluded(c, 0, ForHeads); r != ReasonAhead {
						t.Errorf("excluded for %q", r)
					}
					for at := range nodes {
						if s := c.Endpoints()[at]; at > 0 && len(s.Excluded) > 0 {
							t.Errorf("endpoint %d is excluded: %+v", at, s.Excluded)
						}
					}
				})
			})
		}
	}
}

// It told the lie before anybody dialled: all heads are compared before one is believed.
func TestMadeUpHeadAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes, truth := fakes(3, 60)
		fakes[0].inject(madeUpHead(truth, 59, 100, 600))
		c, _ := dialFakes(t, nil, fakes...)
		if r := excluded(c, 0, ForHeads); r != ReasonAhead {
			t.Errorf("excluded for %q", r)
		}
		if head, err := c.Head(t.Context()); err != nil || head != truth.ref(59) {
			t.Errorf("head %+v, %v", head, err)
		}
	})
}

// An announcement is judged like an answer.
func TestMadeUpAnnouncements(t *testing.T) {
	nodes, truth := fakes(2, 60)
	honest, liar := startPusher(t, nodes[0]), startPusher(t, nodes[1])
	for _, n := range nodes {
		n.setHead(50)
	}
	c, heads := listenToPushers(t, nil, honest, liar)
	nodes[1].chain = newFakeChain(900, 9, func(int) int { return 0 })
	liar.push(800)
	honest.push(51)
	if head := within(t, "the honest head", heads); head != truth.ref(51) {
		t.Errorf("delivered %+v", head)
	}
	eventually(t, func() bool { return excluded(c, 1, ForHeads) == ReasonAhead })
	liar.push(801)
	honest.push(52)
	if head := within(t, "the honest head", heads); head != truth.ref(52) {
		t.Errorf("delivered %+v", head)
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("never came")
		}
	}
}
