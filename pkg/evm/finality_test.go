package evm

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
)

// finalAt makes a node call the block of a number on its branch final.
func finalAt(c fakeChain, n int) script {
	return func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
		return c[n].show(false), nil, method == methodBlockAt && unquote(params[0]) == "finalized"
	}
}

// both follows the first script that has an answer.
func both(scripts ...script) script {
	return func(ctx context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
		for _, s := range scripts {
			if result, f, done := s(ctx, method, params); done {
				return result, f, done
			}
		}
		return nil, nil, false
	}
}

// A matrix of what endpoints call final: one that lies, lags, hangs or fails makes it lower at most, and never wrong.
func TestFinalizedTakesTwo(t *testing.T) {
	other := newFakeChain(60, 9, func(int) int { return 0 })
	for name, c := range map[string]struct {
		nodes int
		lie   func(truth fakeChain) script // of the first node; the others call block 48 final
		chain fakeChain                    // of the first node, where it is another
		want  uint64
		none  bool   // nothing is final
		out   Reason // why the first is excluded for finality
	}{
		"one calls the head final": {3, func(truth fakeChain) script { return finalAt(truth, 49) }, nil,
			48, false, ""},
		"one of two calls the head final": {2, func(truth fakeChain) script { return finalAt(truth, 49) }, nil,
			48, false, ""},
		"one lags": {3, func(truth fakeChain) script { return finalAt(truth, 20) }, nil,
			48, false, ""},
		"one of two lags": {2, func(truth fakeChain) script { return finalAt(truth, 20) }, nil,
			20, false, ""},
		"one calls another branch final": {3, func(fakeChain) script { return finalAt(other, 55) }, other, 48,
			false, ReasonContradicted},
		"one of two calls another branch final": {2, func(fakeChain) script { return finalAt(other, 55) }, other, 0,
			true, ""},
		"one hangs":        {3, func(fakeChain) script { return hang(methodBlockAt) }, nil, 48, false, ""},
		"one of two hangs": {2, func(fakeChain) script { return hang(methodBlockAt) }, nil, 0, true, ""},
		"one does not know the tag": {3,
			func(fakeChain) script { return refuse(refusal(-32602, "invalid argument"), methodBlockAt) }, nil, 48,
			false, ""},
		"the only one": {1, func(truth fakeChain) script { return finalAt(truth, 49) }, nil, 49, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(c.nodes, 50)
				for _, n := range nodes {
					n.inject(finalAt(truth, 48))
				}
				if c.chain != nil {
					nodes[0].chain, nodes[0].head = c.chain, 57
				}
				nodes[0].inject(c.lie(truth))
				client, _ := dialFakes(t, nil, nodes...)
				final, err := client.Finalized(t.Context())
				if c.none && !Undecided(err) || !c.none && (err != nil || final != truth.ref(int(c.want))) {
					t.Errorf("final %+v, %v", final, err)
				}
				if r := excluded(client, 0, ForFinality); r != c.out {
					t.Errorf("excluded for %q, want %q", r, c.out)
				}
			})
		})
	}
}

// Who called a block final that is not on the final branch is caught as soon as that is known, also where it has
// changed its mind.
func TestWhoCalledALostBlockFinalIsExcluded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(3, 60)
		lost := newFakeChain(60, 9, func(int) int { return 0 })
		for _, n := range nodes {
			n.inject(finalAt(truth, 45))
		}
		// Its branch is the others' up to block 49, as it says, and what it calls final lies above.
		nodes[0].inject(finalAt(lost, 50))
		known := func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
			return truth[45].show(false), nil, method == methodBlockAt && unquote(params[0]) == hexutil.EncodeUint64(45)
		}
		nodes[0].inject(both(finalAt(lost, 50), known))
		c, _ := dialFakes(t, nil, nodes...)
		if final, err := c.Finalized(t.Context()); err != nil || final != truth.ref(45) ||
			excluded(c, 0, ForFinality) != "" {
			t.Fatalf("final %+v, %v, excluded for %q", final, err, excluded(c, 0, ForFinality))
		}
		for _, n := range nodes {
			n.inject(finalAt(truth, 52))
		}
		time.Sleep(time.Second)
		if final, err := c.Finalized(t.Context()); err != nil || final != truth.ref(52) {
			t.Fatalf("final %+v, %v", final, err)
		}
		if r := excluded(c, 0, ForFinality); r != ReasonContradicted {
			t.Errorf("excluded for %q", r)
		}
		for at := range 2 {
			if r := excluded(c, at+1, ForFinality); r != "" {
				t.Errorf("endpoint %d is excluded for %q", at+1, r)
			}
		}
	})
}

// What was agreed on stays final, and is not asked for again within a block's time.
func TestFinalizedDoesNotGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		c, _ := dialFakes(t, nil, nodes...)
		for _, n := range nodes {
			n.inject(finalAt(truth, 40))
		}
		asked := func() int { return nodes[0].count(methodBlockAt) + nodes[1].count(methodBlockAt) }
		before := asked()
		for range 10 {
			if final, err := c.Finalized(t.Context()); err != nil || final != truth.ref(40) {
				t.Fatalf("final %+v, %v", final, err)
			}
		}
		if n := asked() - before; n != 2 {
			t.Errorf("%d requests", n)
		}
		nodes[0].inject(finalAt(truth, 7)) // it was restarted
		time.Sleep(time.Second)
		if final, err := c.Finalized(t.Context()); err != nil || final != truth.ref(40) {
			t.Errorf("final %+v, %v", final, err)
		}
	})
}

// A nonce is spent for good where two say so; who says otherwise while two agree is excluded for nonces.
func TestSettledNonceTakesTwo(t *testing.T) {
	count := func(n string) script {
		return func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
			if method != methodNonce || unquote(params[1]) != "0x30" {
				return nil, nil, false
			}
			if n == "" {
				return nil, refusal(-32000, "away"), true
			}
			return n, nil, true
		}
	}
	for name, c := range map[string]struct {
		said []string
		want uint64
		none bool
		out  Reason
	}{
		"one says more":        {[]string{"0x8", "0x7", "0x7"}, 7, false, ReasonContradicted},
		"one says less":        {[]string{"0x0", "0x7", "0x7"}, 7, false, ReasonContradicted},
		"two agree":            {[]string{"0x7", "0x7"}, 7, false, ""},
		"one of two says more": {[]string{"0x8", "0x7"}, 0, true, ""},
		"one of two is away":   {[]string{"0x8", ""}, 0, true, ""},
		"the only one":         {[]string{"0x8"}, 8, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, _ := fakes(len(c.said), 50)
				for i, n := range nodes {
					n.inject(count(c.said[i]))
				}
				client, _ := dialFakes(t, nil, nodes...)
				got, err := client.SettledNonce(t.Context(), chain.Address{1}, 48)
				if c.none && !Undecided(err) || !c.none && (err != nil || got != c.want) ||
					excluded(client, 0, ForNonces) != c.out {
					t.Errorf("%d, %v, excluded for %q", got, err, excluded(client, 0, ForNonces))
				}
			})
		})
	}
}

// What two hosts say is mined frees places; one that says more, or is away, frees none.
func TestMinedNonceTakesTwo(t *testing.T) {
	count := func(n string) script {
		return func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
			if method != methodNonce || unquote(params[1]) != string(Latest) {
				return nil, nil, false
			}
			if n == "" {
				return nil, refusal(-32000, "away"), true
			}
			return n, nil, true
		}
	}
	for name, c := range map[string]struct {
		said []string
		want MinedNonce
		fail bool
	}{
		"all alike":                {[]string{"0x7", "0x7", "0x7"}, MinedNonce{7, true, 7}, false},
		"one says more":            {[]string{"0x9", "0x7", "0x7"}, MinedNonce{7, true, 9}, false},
		"one lags":                 {[]string{"0x5", "0x7", "0x7"}, MinedNonce{7, true, 7}, false},
		"one of two lags":          {[]string{"0x5", "0x7"}, MinedNonce{5, true, 7}, false},
		"one of three is away":     {[]string{"", "0x7", "0x8"}, MinedNonce{7, true, 8}, false},
		"one of two is away":       {[]string{"", "0x7"}, MinedNonce{0, false, 7}, false},
		"the only one":             {[]string{"0x7"}, MinedNonce{7, true, 7}, false},
		"nobody says anything":     {[]string{"", ""}, MinedNonce{}, true},
		"two are away, one is not": {[]string{"", "", "0x7"}, MinedNonce{0, false, 7}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, _ := fakes(len(c.said), 50)
				for i, n := range nodes {
					n.inject(count(c.said[i]))
				}
				client, _ := dialFakes(t, nil, nodes...)
				got, err := client.MinedNonce(t.Context(), chain.Address{1})
				if got != c.want || (err != nil) != c.fail {
					t.Errorf("%+v, %v", got, err)
				}
			})
		})
	}
}

// Addresses of one name are one source, whatever their ports and keys are, and one is said to be one. On one machine
// each port is another node, but for the two ports of the only one.
func TestHosts(t *testing.T) {
	for name, c := range map[string]struct {
		urls []string
		want int
	}{
		"ports":     {[]string{"http://node:8545", "ws://node:8546"}, 1},
		"keys":      {[]string{"https://rpc.example/v3/aaaaaaaa", "https://RPC.example/v3/bbbbbbbb"}, 1},
		"providers": {[]string{"https://rpc.example", "https://other.example"}, 2},
		"tunnels":   {[]string{"http://127.0.0.1:8545", "http://127.0.0.1:9545", "http://localhost:8545"}, 2},
		"one node":  {[]string{"http://127.0.0.1:8545", "ws://127.0.0.1:8546"}, 1},
		"one port":  {[]string{"http://[::1]:8545", "ws://[::1]:8545", "ws://[::1]:9546"}, 2},
	} {
		p, urls := &pool{}, []secret.URL{}
		for _, u := range c.urls {
			urls = append(urls, secret.MustURL(u))
		}
		for _, host := range hostsOf(urls) {
			p.public = append(p.public, &endpoint{host: host})
		}
		client := &Client{Reader{pool: p}}
		if got := client.Hosts(); got != c.want || (client.OneWord() == "") != (c.want > 1) {
			t.Errorf("%s: %d, %q", name, got, client.OneWord())
		}
		if strings.Contains(client.OneWord(), "aaaaaaaa") {
			t.Errorf("%s: %q holds a secret", name, client.OneWord())
		}
	}
}

// The third host is asked in the place of one that has no answer, and nobody is waited for once enough have answered
// and the rest is late.
func TestQuorumReadGoesOnWithoutTheLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(5, 50)
		for _, n := range nodes {
			n.inject(finalAt(truth, 48))
		}
		c, _ := dialFakes(t, nil, nodes...)
		endpoints, err := c.pool.bestOfHosts(ForFinality)
		if err != nil {
			t.Fatal(err)
		}
		at := map[*endpoint]*fakeNode{}
		for i, e := range c.pool.public {
			at[e] = nodes[i]
		}
		at[endpoints[0]].inject(hang(methodBlockAt))
		at[endpoints[1]].inject(refuse(refusal(-32000, "no backend"), methodBlockAt))
		begun := time.Now()
		if final, err := c.Finalized(t.Context()); err != nil || final != truth.ref(48) {
			t.Errorf("final %+v, %v", final, err)
		}
		if took := time.Since(begun); took > c.pool.cfg.HedgeAfter {
			t.Errorf("it took %s", took)
		}
	})
}

// Two of three are enough however fast the third is and whatever it says: the slower one of two that are right is
// waited for.
func TestSlowAndRightBeatsFastAndWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(3, 50)
		other := newFakeChain(60, 9, func(int) int { return 0 })
		nodes[0].chain = other
		nodes[0].inject(finalAt(other, 55))
		nodes[1].inject(finalAt(truth, 48))
		nodes[2].inject(both(delay(time.Second, methodBlockAt), finalAt(truth, 48)))
		c, _ := dialFakes(t, nil, nodes...)
		if final, err := c.Finalized(t.Context()); err != nil || final != truth.ref(48) ||
			excluded(c, 0, ForFinality) != ReasonContradicted {
			t.Errorf("final %+v, %v, excluded for %q", final, err, excluded(c, 0, ForFinality))
		}
		if hash, err := c.SettledHash(t.Context(), 47); err != nil || hash != truth.ref(47).Hash {
			t.Errorf("block %s, %v", hash, err)
		}
	})
}

// One that is known to be away costs no time while two others agree.
func TestNobodyWaitsForWhoIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(3, 50)
		for _, n := range nodes {
			n.inject(finalAt(truth, 48))
		}
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].inject(hang(methodBlockAt, methodChainID))
		for _, known := range []bool{false, true} {
			want := c.pool.cfg.HedgeAfter
			if known {
				want = 0
				for range 3 {
					c.pool.public[0].blame(&callError{class: failedTimeout, method: methodBlockAt,
						err: context.DeadlineExceeded})
				}
			}
			begun := time.Now()
			if hash, err := c.SettledHash(t.Context(), 47); err != nil || hash != truth.ref(47).Hash ||
				time.Since(begun) != want {
				t.Errorf("block %s, %v after %s", hash, err, time.Since(begun))
			}
		}
	})
}
