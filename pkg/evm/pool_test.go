package evm

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/chain"
)

// A second endpoint is asked when the first has not answered within the bound; the first to answer wins.
func TestHedgesWhenTheBestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].inject(hang(methodBlockAt, methodBlock, methodReceipts))
		begun := time.Now()
		head, err := c.Head(t.Context())
		if took := time.Since(begun); err != nil || head != truth.ref(49) || took != c.pool.cfg.HedgeAfter {
			t.Errorf("head %+v, %v after %s", head, err, took)
		}
		begun = time.Now()
		block, err := c.Block(t.Context(), head.Hash) // B had it: B is asked first
		if took := time.Since(begun); err != nil || block.Hash != head.Hash || took != 0 ||
			block.Source != "http://b/" {
			t.Errorf("block %+v, %v after %s", block, err, took)
		}
	})
}

// A caller in a hurry blames nobody, and does not have the others asked in vain.
func TestCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(3, 50)
		c, _ := dialFakes(t, nil, nodes...)
		for _, n := range nodes {
			n.inject(hang(methodGasPrice))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		if _, err := c.Reader.GasPrice(ctx); err == nil || time.Since(begun) != 100*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		for i, s := range c.Endpoints() {
			if s.Failures > 0 || s.FailureShare > 0 || s.LastError != nil || i > 0 &&
				nodes[i].count(methodGasPrice) > 0 {
				t.Errorf("endpoint %d: %+v", i, s)
			}
		}
	})
}

// What an endpoint usually takes tells when it is late.
func TestHedgesAfterP95(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(2, 50)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].inject(delay(40*time.Millisecond, methodBlockAt))
		nodes[1].inject(delay(time.Second, methodBlockAt))
		for range 2 * enoughSamples {
			if _, err := c.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		nodes[0].inject(hang(methodBlockAt))
		nodes[1].inject(nil)
		begun := time.Now()
		if _, err := c.Head(t.Context()); err != nil || time.Since(begun) != 40*time.Millisecond {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// A node that refuses, is cut or does not answer costs its place, and gets it back when it answers again.
func TestFailsOverInOrderOfScore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(3, 50)
		c, reg := dialFakes(t, nil, nodes...)
		for _, f := range []*fault{{status: -1}, {status: 502}, refusal(-32000, "no backend is currently healthy"),
			refusal(-32603, "internal error")} {
			nodes[0].inject(refuse(f, methodBlockAt))
			for range 5 {
				if head, err := c.Head(t.Context()); err != nil || head != truth.ref(49) {
					t.Fatalf("%+v: head %+v, %v", f, head, err)
				}
			}
		}
		nodes[0].inject(refuse(&fault{status: -1}, methodBlockAt, "eth_chainId"))
		time.Sleep(4*c.pool.cfg.ProbeInterval + time.Second)
		if r := excluded(c, 0, Everything); r != ReasonUnreachable ||
			gauge(t, reg, "evm_endpoint_excluded", "http://a/", string(ReasonUnreachable)) != 1 {
			t.Errorf("excluded for %q", r)
		}
		before := nodes[0].count(methodBlockAt) + nodes[0].count("eth_chainId")
		for range 10 {
			if _, err := c.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if now := nodes[0].count(methodBlockAt) + nodes[0].count("eth_chainId"); now != before {
			t.Errorf("an excluded endpoint was asked %d times", now-before)
		}
		nodes[0].inject(nil)
		time.Sleep(2 * c.pool.cfg.ProbeInterval)
		if r := excluded(c, 0, Everything); r != "" ||
			gauge(t, reg, "evm_endpoint_excluded", "http://a/", string(ReasonUnreachable)) != 0 {
			t.Errorf("still excluded for %q", r)
		}
	})
}

// lies are answers that no honest node gives, each told by one node and found out with the help of another.
func lies(truth fakeChain) []struct {
	name string
	told script
	out  Purpose
} {
	swap := func(method, said, lie string) script {
		honest := &fakeNode{chain: truth, chainID: fakeChainID, head: len(truth) - 1}
		return func(_ context.Context, m string, params []json.RawMessage) (any, *fault, bool) {
			if m != method {
				return nil, nil, false
			}
			result, _ := honest.honest(m, params, honest.head)
			raw, _ := json.Marshal(result)
			return json.RawMessage(strings.Replace(string(raw), said, lie, 1)), nil, true
		}
	}
	other := func(_ context.Context, m string, _ []json.RawMessage) (any, *fault, bool) {
		return truth[7].show(true), nil, m == methodBlock
	}
	const inLog = `"transactionIndex":"0x0","blockHash":"`
	return []struct {
		name string
		told script
		out  Purpose
	}{
		{"another block for the hash", other, Everything},
		{"a header that does not hash to its hash", swap(methodBlock, `"gasLimit":"0x1"`, `"gasLimit":"0x2"`),
			Everything},
		{"a transaction left out", swap(methodBlock, shown(truth[40].json["transactions"]), `[]`), ForBodies},
		{"a transaction of which there is the hash", swap(methodBlock, shown(truth[40].json["transactions"]),
			`["`+truth[40].tx.Hex()+`"]`),
			ForBodies},
		{"a transaction elsewhere", swap(methodBlock, `"transactionIndex":"0x0"`, `"transactionIndex":"0x1"`), Everything},
		{"receipts of another status", swap(methodReceipts, `"status":"0x1"`, `"status":"0x0"`), ForReceipts},
		{"logs of another block", swap(methodReceipts, inLog+truth[40].hash.Hex(), inLog+truth[39].hash.Hex()),
			ForReceipts},
		{"removed logs", swap(methodReceipts, `"removed":false`, `"removed":true`), ForReceipts},
		{"logs out of order", swap(methodReceipts, `"logIndex":"0x0"`, `"logIndex":"0x7"`), ForReceipts},
		{"logs of another contract", swap(methodReceipts, `"address":"`+venueText, `"address":"0xcc`+venueText[4:]),
			ForReceipts},
		{"receipts without their logs", swap(methodReceipts, shown(truth[40].logs), `[]`), ForReceipts},
		{"receipts of other gas", swap(methodReceipts, `"cumulativeGasUsed":"0x5208"`, `"cumulativeGasUsed":"0x5209"`),
			ForReceipts},
		{"receipts of another transaction", swap(methodReceipts, truth[40].tx.Hex(), truth[39].tx.Hex()), ForReceipts},
		{"receipts of another type of transaction", swap(methodReceipts, `"type":"0x2"`, `"type":"0x7e"`), ForReceipts},
	}
}

// shown is what stands in a document.
func shown(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// A lie costs the liar its place for the purpose; the answer comes from another endpoint. After the cool-down it is
// probed and taken back.
func TestLiarsAreExcluded(t *testing.T) {
	for _, l := range lies(newFakeChain(50, 0, func(n int) int { return (n + 1) % 3 })) {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(2, 50)
				c, reg := dialFakes(t, nil, nodes...)
				nodes[0].inject(l.told)
				prefer(c.pool.public[0])
				readTwoLogs(t, c, truth)
				if r := excluded(c, 0, l.out); r != ReasonLied ||
					gauge(t, reg, "evm_endpoint_excluded", "http://a/", string(ReasonLied)) != 1 {
					t.Fatalf("excluded for %q", r)
				}
				asked := func() (n int) {
					for _, method := range map[Purpose][]string{
						ForBodies: {methodBlock}, ForReceipts: {methodReceipts},
						Everything: {methodBlock, methodReceipts},
					}[l.out] {
						n += nodes[0].count(method)
					}
					return n
				}
				before := asked()
				if readTwoLogs(t, c, truth); asked() != before {
					t.Error("the liar is asked again")
				}
				nodes[0].inject(nil)
				time.Sleep(c.pool.cfg.Cooldown - c.pool.cfg.ProbeInterval)
				if excluded(c, 0, l.out) != ReasonLied {
					t.Error("taken back before the cool-down was over")
				}
				time.Sleep(2 * c.pool.cfg.ProbeInterval)
				if r := excluded(c, 0, l.out); r != "" ||
					gauge(t, reg, "evm_endpoint_excluded", "http://a/", string(ReasonLied)) != 0 {
					t.Errorf("still excluded for %q after the cool-down", r)
				}
			})
		})
	}
}

// readTwoLogs reads block 40, which has two logs, in all ways.
func readTwoLogs(t *testing.T, c *Client, truth fakeChain) {
	t.Helper()
	block, err := c.Block(t.Context(), truth.ref(40).Hash)
	if err != nil || block.BlockRef != truth.ref(40) {
		t.Fatalf("block %+v, %v", block, err)
	}
	c.pool.memory = memory{} // so that nobody is known to have the block
	receipts, err := c.Receipts(t.Context(), block)
	if err != nil || len(receipts) != 1 || len(receipts[0].Logs) != 2 {
		t.Fatalf("%d receipts, %v", len(receipts), err)
	}
}

// Where everybody was caught somebody still has to be asked; one that is not caught is enough for the others not to be.
func TestWhoIsAskedWhenAllWereCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(2, 50)
		c, _ := dialFakes(t, nil, nodes...)
		c.pool.public[0].distrust(Everything, ReasonSuspected, "for the test")
		nodes[1].inject(hang(methodGasPrice))
		if _, err := c.Reader.GasPrice(t.Context()); err == nil || nodes[0].count(methodGasPrice) > 0 {
			t.Errorf("%v; one that was caught was asked while another was not", err)
		}
		c.pool.public[1].distrust(Everything, ReasonSuspected, "for the test")
		if _, err := c.Reader.GasPrice(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A node that falls behind comes last, and is back when it has caught up.
func TestStaleNodesComeLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 100)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].setHead(80)
		time.Sleep(c.pool.cfg.ProbeInterval + time.Second)
		if r := excluded(c, 0, Everything); r != ReasonStale || c.Endpoints()[0].Behind != 19*time.Second {
			t.Errorf("excluded for %q, %s behind", r, c.Endpoints()[0].Behind)
		}
		for range 3 {
			if head, err := c.Head(t.Context()); err != nil || head != truth.ref(99) {
				t.Errorf("head %+v, %v", head, err)
			}
		}
		nodes[1].inject(refuse(&fault{status: -1}, methodBlockAt)) // a stale head is better than none
		if head, err := c.Head(t.Context()); err != nil || head != truth.ref(80) {
			t.Errorf("head %+v, %v", head, err)
		}
		nodes[1].inject(nil)
		nodes[0].setHead(99)
		time.Sleep(2 * c.pool.cfg.ProbeInterval)
		if r := excluded(c, 0, Everything); r != "" {
			t.Errorf("still excluded for %q", r)
		}
	})
}

// One endpoint of three cannot make the others look stale by making up blocks, and is outvoted when its chain is
// another one.
func TestTheMajorityIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(3, 60)
		nodes[0].chain, nodes[0].head = newFakeChain(200, 9, func(int) int { return 0 }), 199
		c, _ := dialFakes(t, nil, nodes...)
		for at := range 2 {
			if r := excluded(c, at+1, Everything); r != "" {
				t.Errorf("endpoint %d is excluded for %q", at+1, r)
			}
		}
		time.Sleep(c.pool.cfg.ProbeInterval + time.Second)
		if r := excluded(c, 0, Everything); r != ReasonContradicted {
			t.Errorf("excluded for %q", r)
		}
		if head, err := c.Head(t.Context()); err != nil || head != truth.ref(59) {
			t.Errorf("head %+v, %v", head, err)
		}
		time.Sleep(3 * c.pool.cfg.Cooldown) // it stays out for as long as it contradicts
		if r := excluded(c, 0, Everything); r != ReasonContradicted {
			t.Errorf("excluded for %q later", r)
		}
	})
}

// Of two that disagree nobody knows who is right.
func TestTwoCannotOutvote(t *testing.T) {
	for votes, want := range map[[4]byte]byte{
		{1, 2}: 0, {1, 1}: 0, {1, 1, 1}: 1, {1, 1, 2}: 1, {1, 2, 3}: 0, {1, 1, 2, 2}: 0, {1, 1, 1, 2}: 1,
	} {
		var hashes []chain.Hash
		for _, v := range votes {
			hashes = append(hashes, chain.Hash{v})
		}
		if got := majority(hashes); got != (chain.Hash{want}) {
			t.Errorf("%v: %d, want %d", votes, got[0], want)
		}
	}
}

// Who wants fewer requests gets fewer: none for as long as it says, then half as many as before; others are asked
// meanwhile.
func TestThrottledEndpoints(t *testing.T) {
	for name, f := range map[string]*fault{
		"HTTP 429": {status: http.StatusTooManyRequests, text: "slow down",
			header: http.Header{"Retry-After": {"7"}}},
		"JSON -32005":    refusal(-32005, "rate limit"),
		"limit exceeded": refusal(-32005, "limit exceeded"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, _ := fakes(2, 50)
				c, _ := dialFakes(t, func(cfg *Config) { cfg.ProbeInterval = time.Hour }, nodes...)
				prefer(c.pool.public[0])
				c.pool.public[0].bucket.rate, c.pool.public[0].bucket.tokens = 100, 100
				nodes[0].inject(refuse(f, methodGasPrice))
				for range 5 {
					if _, err := c.Reader.GasPrice(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if n := nodes[0].count(methodGasPrice); n != 1 {
					t.Errorf("asked %d times", n)
				}
				s := c.Endpoints()[0]
				if s.RequestsPerSecond < 49 || s.RequestsPerSecond > 51 || len(s.Excluded) > 0 {
					t.Errorf("%f requests per second, excluded %+v", s.RequestsPerSecond, s.Excluded)
				}
				want := firstPause
				if f.header != nil {
					want = 7 * time.Second
				}
				if wait := c.pool.public[0].bucket.ready(time.Now()); wait != want {
					t.Errorf("a pause of %s", wait)
				}
			})
		})
	}
}

// An endpoint that has to be waited for does not hold up the probing of the others.
func TestProbesWaitForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 100)
		nodes[1].head = 50
		c, _ := dialFakes(t, nil, nodes...)
		c.pool.public[0].bucket.refused(time.Now(), time.Minute)
		nodes[1].setHead(99)
		time.Sleep(c.pool.cfg.ProbeInterval + time.Second)
		if head := c.Endpoints()[1].Head; head != truth.ref(99) {
			t.Errorf("head %+v after a probe", head)
		}
	})
}

// With one endpoint there is nobody else: the request waits for as long as it has to.
func TestTheOnlyEndpointIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(1, 50)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].inject(refuse(&fault{status: http.StatusTooManyRequests, header: http.Header{"Retry-After": {"3"}}},
			methodGasPrice))
		if _, err := c.Reader.GasPrice(t.Context()); err == nil {
			t.Fatal("no error")
		}
		nodes[0].inject(nil)
		begun := time.Now()
		if _, err := c.Reader.GasPrice(t.Context()); err != nil || time.Since(begun) < 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		raw := []byte{1, 2, 3}
		nodes[0].inject(refuse(&fault{status: http.StatusTooManyRequests, header: http.Header{"Retry-After": {"3"}}},
			methodGasPrice))
		_, _ = c.Reader.GasPrice(t.Context())
		begun = time.Now()
		if err := c.SendRaw(t.Context(), raw); err != nil || time.Since(begun) > 0 {
			t.Errorf("%v after %s: a signed transaction waits for nobody", err, time.Since(begun))
		}
	})
}

// A caller that finds a block wrong: who served it, a second opinion, and the consequence.
func TestSuspectAndElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		c, _ := dialFakes(t, nil, nodes...)
		prefer(c.pool.public[0])
		at := truth.ref(40).Hash
		if _, err := c.Header(t.Context(), at); err != nil || c.ServedBy(at) != "http://a/" {
			t.Fatalf("by %q, %v", c.ServedBy(at), err)
		}
		if block, err := c.Excluding(c.ServedBy(at)).Block(t.Context(), at); err != nil || block.Source != "http://b/" {
			t.Fatalf("elsewhere by %q, %v", block.Source, err)
		}
		if c.ServedBy(at) != "http://a/" || c.ServedBy(chain.Hash{1}) != "" {
			t.Error("who served first is not known, or an unknown block is")
		}
		if _, err := c.Excluding("http://a/", "http://b/").Head(t.Context()); err == nil {
			t.Errorf("nobody is left: %v", err)
		}
		if c.Suspect(at, "it is not the chain's"); excluded(c, 0, Everything) != ReasonSuspected {
			t.Errorf("excluded: %+v", c.Endpoints()[0].Excluded)
		}
	})
}

// Who served what is remembered of the last blocks only, of each the first.
func TestMemory(t *testing.T) {
	var m memory
	e := &endpoint{}
	m.serve(chain.Hash{9}, e)
	m.serve(chain.Hash{9}, &endpoint{})
	if m.server(chain.Hash{9}) != e {
		t.Error("the first does not count")
	}
	for i := range 3 * remembered {
		m.serve(chain.Hash{byte(i >> 16), byte(i >> 8), byte(i), 1}, e)
	}
	if len(m.served) != remembered || m.server(chain.Hash{0, 0, 0, 1}) != nil {
		t.Errorf("%d blocks", len(m.served))
	}
}
