package evm

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"testing/synctest"

	"perpkeeper/pkg/chain"
)

// Headers of a range, through any limits of batches.
func TestBlocks(t *testing.T) {
	for _, limit := range []int{1, 2, 7, 100, 1000} {
		for _, f := range []*fault{refusal(-32600, "batch too large"), {status: 413, text: "<html>"}, {status: -1}} {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(1, 250)
				c, _ := dialFakes(t, nil, nodes...)
				nodes[0].inject(func(_ context.Context, m string, params []json.RawMessage) (any, *fault, bool) {
					if n, _ := strconv.Atoi(string(params0(params))); m == "batch" && n > limit {
						return nil, f, true
					}
					return nil, nil, false
				})
				headers, err := c.Blocks(t.Context(), 3, 249)
				if err != nil || len(headers) != 247 {
					t.Fatalf("batches of %d: %d headers, %v", limit, len(headers), err)
				}
				for i, h := range headers {
					if h.BlockRef != truth.ref(i+3) || h.ReceiptsRoot != chain.Hash(truth[i+3].header.ReceiptHash) ||
						h.Bloom != Bloom(truth[i+3].header.Bloom) {
						t.Fatalf("header %d: %+v", i+3, h)
					}
				}
				if nodes[0].count(methodBlock)+nodes[0].count(methodReceipts) > 0 {
					t.Error("more than headers was asked for")
				}
			})
		}
	}
}

func params0(params []json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		return nil
	}
	return params[0]
}

// Headers that do not hash to what they say, or do not follow each other, are not returned.
func TestBlocksFindsLies(t *testing.T) {
	other := newFakeChain(60, 7, func(int) int { return 0 })
	for name, tt := range map[string]struct {
		show func(truth fakeChain, at int) any
		out  Reason
	}{
		"another header": {func(truth fakeChain, at int) any {
			shown := truth[at].show(false)
			shown["gasLimit"] = "0x77"
			return shown
		}, ReasonLied},
		"another number": {func(truth fakeChain, _ int) any { return truth[2].show(false) }, ReasonLied},
		"another branch": {func(_ fakeChain, at int) any { return other[at].show(false) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(2, 60)
				c, _ := dialFakes(t, nil, nodes...)
				nodes[0].inject(func(_ context.Context, m string, params []json.RawMessage) (any, *fault, bool) {
					if m == methodBlockAt && unquote(params[0]) == "0x1e" {
						return tt.show(truth, 30), nil, true
					}
					return nil, nil, false
				})
				c.pool.public[1].vitals.latency = 1000
				headers, err := c.Blocks(t.Context(), 10, 50)
				if err != nil || len(headers) != 41 || headers[20].BlockRef != truth.ref(30) ||
					excluded(c, 0, Everything) != tt.out {
					t.Errorf("%d headers, %v; excluded for %q", len(headers), err, excluded(c, 0, Everything))
				}
			})
		})
	}
}

// Where everybody wants fewer requests, headers come later.
func TestBlocksOfThrottledEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(1, 250)
		c, _ := dialFakes(t, nil, nodes...)
		requests := 0
		nodes[0].inject(func(_ context.Context, m string, _ []json.RawMessage) (any, *fault, bool) {
			if m != "batch" {
				return nil, nil, false
			}
			requests++
			return nil, &fault{status: 429}, requests == 2
		})
		if headers, err := c.Blocks(t.Context(), 0, 249); err != nil || len(headers) != 250 || requests != 4 {
			t.Errorf("%d headers after %d requests, %v", len(headers), requests, err)
		}
	})
}

func TestBlocksBeyondTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(1, 60)
		c, _ := dialFakes(t, nil, nodes...)
		if _, err := c.Blocks(t.Context(), 50, 70); !NotFound(err) {
			t.Error(err)
		}
	})
}
