package evm

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

// provider is how a fake provider limits eth_getLogs.
type provider struct {
	blocks    int    // widest range; 0 for any
	exclusive bool   // counted from the block before
	text      string // %d is the limit
	results   int    // most logs; 0 for any
	crowded   string // its text; %d is the most logs, %#x the range that works, inverted where it says so
	filters   int    // most addresses and topics together; 0 for any
	throttle  int    // every so many requests one too many; 0 for never
	requests  int
}

var (
	limitTexts = []string{"exceed maximum block range: %d", "x: eth_getLogs is limited to a %d range",
		"block range is too wide", "up to a %d block range"}
	crowdedTexts = []string{
		"query returned more than %d results", "query exceeds max results %d, retry with the range %[2]d-%[3]d",
		"Log response size exceeded. this block range should work: [%#[2]x, %#[3]x]",
		"Try with this block range [%#[3]x, %#[2]x]",
	}
)

// script is the provider as a script of a fake node of a chain.
func (p *provider) script(truth fakeChain) script {
	return func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
		if method != methodLogs {
			return nil, nil, false
		}
		a := readAsksLogs(params[0])
		from, to := int(*a.From), int(*a.To)
		p.requests++
		span := to - from + 1
		if p.exclusive {
			span++ // of limit n it gives n-1
		}
		logs := truth.truth(from, to, Filter{Addresses: a.Addresses, Topics: a.Topics[0]})
		switch {
		case p.throttle > 0 && p.requests%p.throttle == 0:
			return nil, refusal(codeLimit, "rate limit"), true
		case p.filters > 0 && len(a.Addresses)+len(a.Topics[0]) > p.filters:
			return nil, refusal(-32602, "exceed max addresses or topics per search position"), true
		case p.blocks > 0 && span > p.blocks:
			text := p.text
			if strings.Contains(text, "%d") {
				text = fmt.Sprintf(text, p.blocks)
			}
			return nil, refusal(-32000, text), true
		case p.results > 0 && len(logs) > p.results:
			works := from
			for n, at := 0, from; at <= to; at++ {
				if n += len(truth[at].logs); n > p.results {
					break
				}
				works = at
			}
			text := fmt.Sprintf(p.crowded, p.results, from, works)
			return nil, refusal(-32005, strings.Split(text, "%!(EXTRA")[0]), true
		default:
			return nil, nil, false
		}
	}
}

// Whatever the providers' limits and texts are, the logs of a range are those of the chain, in its order.
func TestLogsRangeUnderAnyLimits(t *testing.T) {
	truth := newFakeChain(400, 0, func(n int) int { return []int{0, 0, 1, 5, 0, 2, 0}[n%7] })
	rapid.Check(t, func(rt *rapid.T) {
		from := rapid.IntRange(0, 399).Draw(rt, "from")
		to := rapid.IntRange(from, 399).Draw(rt, "to")
		f := Filter{
			Addresses: allEvents.Addresses[:rapid.IntRange(1, 2).Draw(rt, "addresses")],
			Topics:    allEvents.Topics[:rapid.IntRange(1, 2).Draw(rt, "topics")],
		}
		var providers []provider
		for range rapid.IntRange(1, 2).Draw(rt, "nodes") {
			providers = append(providers, provider{
				blocks: rapid.SampledFrom([]int{0, 2, 3, 10, 64, 1000}).Draw(rt, "blocks"), exclusive: rapid.Bool().
					Draw(rt, "exclusive"),
				text: rapid.SampledFrom(limitTexts).Draw(rt, "text"), results: rapid.SampledFrom([]int{0, 3, 5, 40}).
					Draw(rt, "results"),
				crowded:  rapid.SampledFrom(crowdedTexts).Draw(rt, "crowded"),
				filters:  rapid.SampledFrom([]int{0, 2, 3}).Draw(rt, "filters"),
				throttle: rapid.SampledFrom([]int{0, 0, 7}).Draw(rt, "throttle"),
			})
		}
		synctest.Test(t, func(t *testing.T) {
			var nodes []*fakeNode
			for i := range providers {
				nodes = append(nodes, &fakeNode{chain: truth, chainID: fakeChainID, head: 399})
				nodes[i].script = providers[i].script(truth)
			}
			c, _ := dialFakes(t, nil, nodes...)
			logs, err := c.LogsRange(t.Context(), uint64(from), uint64(to), f)
			if want := truth.truth(from, to, f); err != nil || !sameLogs(logs, want) {
				rt.Fatalf("%d logs of %d, %v", len(logs), len(want), err)
			}
		})
	})
}

func sameLogs(a, b []chain.Log) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// A node of 100 blocks a request is asked for 100 at a time, not found out again for each chunk; ten minutes later it
// is tried again.
func TestLogsRangeLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(1, 2000)
		p := provider{blocks: 100, text: limitTexts[0]}
		nodes[0].obey(p.script(truth))
		c, reg := dialFakes(t, nil, nodes...)
		read := func() {
			t.Helper()
			p.requests = 0
			if logs, err := c.LogsRange(t.Context(), 0, 1999, allEvents); err != nil ||
				!sameLogs(logs, truth.truth(0, 1999, allEvents)) {
				t.Fatalf("%d logs, %v", len(logs), err)
			}
		}
		if read(); p.requests != 21 || c.Endpoints()[0].LogsRange != 100 {
			t.Errorf("%d requests, learnt %d", p.requests, c.Endpoints()[0].LogsRange)
		}
		if read(); p.requests != 20 {
			t.Errorf("%d requests the second time", p.requests)
		}
		if n := gauge(t, reg, "evm_logs_range_refusals_total", string(LogsShrink)); n != 1 {
			t.Errorf("%f refusals", n)
		}
		p.blocks = 1000 // a better plan
		time.Sleep(ceilingHolds)
		for range 10 {
			read()
		}
		if c.pool.public[0].span.next() < 500 {
			t.Errorf("%d blocks next after the limit was raised", c.pool.public[0].span.next())
		}
	})
}

// A block with more logs than a node gives is read from its receipts.
func TestLogsRangeFallsBackToReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		truth := newFakeChain(60, 0, func(n int) int { return map[int]int{31: 50}[n] + n%2 })
		node := &fakeNode{chain: truth, chainID: fakeChainID, head: 59}
		node.script = (&provider{results: 20, crowded: crowdedTexts[0]}).script(truth)
		c, _ := dialFakes(t, nil, node)
		logs, err := c.LogsRange(t.Context(), 10, 59, allEvents)
		if err != nil || !sameLogs(logs, truth.truth(10, 59, allEvents)) || node.count(methodReceipts) != 1 {
			t.Errorf("%d logs, %v, %d receipts", len(logs), err, node.count(methodReceipts))
		}
		node.script = func(ctx context.Context, m string, params []json.RawMessage) (any, *fault, bool) {
			if m == methodReceipts {
				r := truth[31].receipt
				r["cumulativeGasUsed"] = "0x5209"
				return []any{r}, nil, true
			}
			return (&provider{results: 20, crowded: crowdedTexts[0]}).script(truth)(ctx, m, params)
		}
		if logs, err := c.LogsRange(t.Context(), 31, 31, allEvents); err == nil {
			t.Errorf("%d logs from receipts that prove nothing", len(logs))
		}
	})
}

// What is not of the range, not in order or removed is refused, the liar excluded, and another endpoint asked.
func TestLogsRangeFindsLies(t *testing.T) {
	truth := newFakeChain(60, 0, func(n int) int { return 2 * (n % 2) })
	for name, change := range map[string]func([]map[string]any) []map[string]any{
		"beyond the range": func(l []map[string]any) []map[string]any {
			l[len(l)-1]["blockNumber"], l[len(l)-2]["blockNumber"] = "0x3b", "0x3b"
			return l
		},
		"before the range": func(l []map[string]any) []map[string]any {
			l[0]["blockNumber"], l[1]["blockNumber"] = "0x1", "0x1"
			return l
		},
		"shuffled": func(l []map[string]any) []map[string]any { l[2], l[5] = l[5], l[2]; return l },
		"twice":    func(l []map[string]any) []map[string]any { return append(l[:3], l[2:]...) },
		"removed":  func(l []map[string]any) []map[string]any { l[3]["removed"] = true; return l },
		"two blocks of one number": func(l []map[string]any) []map[string]any {
			l[1]["blockHash"] = common.Hash{1}
			return l
		},
		"one block of two numbers": func(l []map[string]any) []map[string]any {
			l[2]["blockHash"] = l[0]["blockHash"]
			return l
		},
		"another event": func(l []map[string]any) []map[string]any {
			l[0]["topics"] = []common.Hash{{9}}
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var nodes []*fakeNode
				for range 2 {
					nodes = append(nodes, &fakeNode{chain: truth, chainID: fakeChainID, head: 59})
				}
				c, _ := dialFakes(t, nil, nodes...)
				nodes[0].obey(func(_ context.Context, m string, params []json.RawMessage) (any, *fault, bool) {
					if m != methodLogs {
						return nil, nil, false
					}
					honest, _ := nodes[0].logs(params[0], 59)
					raw, _ := json.Marshal(honest)
					var logs []map[string]any
					_ = json.Unmarshal(raw, &logs)
					return change(logs), nil, true
				})
				c.pool.public[1].vitals.latency = 1000 // the liar is the best
				logs, err := c.LogsRange(t.Context(), 10, 50, allEvents)
				if err != nil || !sameLogs(logs, truth.truth(10, 50, allEvents)) ||
					excluded(c, 0, ForLogs) != ReasonLied {
					t.Errorf("%d logs, %v; excluded for %q", len(logs), err, excluded(c, 0, ForLogs))
				}
			})
		})
	}
}

// A node without eth_getLogs is left out, one that is cut failed over; where nobody serves it the error says so.
func TestLogsRangeFailsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(3, 60)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].obey(refuse(refusal(codeLimit, "limit exceeded"), methodLogs))
		nodes[1].obey(refuse(&fault{status: -1}, methodLogs))
		for range 3 {
			if logs, err := c.LogsRange(t.Context(), 0, 59, allEvents); err != nil ||
				!sameLogs(logs, truth.truth(0, 59, allEvents)) {
				t.Fatalf("%d logs, %v", len(logs), err)
			}
		}
		nodes[1].obey(refuse(refusal(codeLimit, "limit exceeded"), methodLogs))
		nodes[2].obey(refuse(refusal(codeMethodNotFound, "method not found"), methodLogs))
		if _, err := c.LogsRange(t.Context(), 0, 59, allEvents); err == nil || !Refused(err) {
			t.Errorf("nobody serves it: %v", err)
		}
	})
}

// A node that does not have the blocks yet says that they hold no logs. It is not believed.
func TestLogsRangeOfALaggard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 60)
		nodes[0].head = 57
		c, _ := dialFakes(t, nil, nodes...)
		c.pool.public[1].vitals.latency = 1e6 // the laggard is the best
		for range 2 {
			if logs, err := c.LogsRange(t.Context(), 0, 59, allEvents); err != nil ||
				!sameLogs(logs, truth.truth(0, 59, allEvents)) {
				t.Fatalf("%d logs, %v", len(logs), err)
			}
		}
		if n := nodes[0].count(methodLogs); n > 0 {
			t.Errorf("the laggard was asked for logs %d times", n)
		}
		nodes[1].head = 57
		c.pool.public[1].names(chain.BlockRef{})
		if logs, err := c.LogsRange(t.Context(), 50, 59, allEvents); !NotFound(err) {
			t.Errorf("%d logs, %v", len(logs), err)
		}
	})
}

// Headers of a range, through any limits of batches.
func TestBlocks(t *testing.T) {
	for _, limit := range []int{1, 2, 7, 100, 1000} {
		for _, f := range []*fault{refusal(-32600, "batch too large"), {status: 413, text: "<html>"}, {status: -1}} {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(1, 250)
				c, _ := dialFakes(t, nil, nodes...)
				nodes[0].obey(func(_ context.Context, m string, params []json.RawMessage) (any, *fault, bool) {
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
				if nodes[0].count(methodBlock)+nodes[0].count(methodLogs) > 0 {
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
				nodes[0].obey(func(_ context.Context, m string, params []json.RawMessage) (any, *fault, bool) {
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
		nodes[0].obey(func(_ context.Context, m string, _ []json.RawMessage) (any, *fault, bool) {
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
