package evm

import (
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/secret"
)

// inFullButOther makes a transaction another than its hash says, with all its fields there.
func inFullButOther(tx map[string]any) { tx["gas"] = hexutil.Uint64(5) }

// withOtherHash makes it one that is not in the block, too.
func withOtherHash(change func(map[string]any)) func(map[string]any) {
	return func(tx map[string]any) {
		change(tx)
		tx["hash"] = common.Hash{1}
	}
}

// A body that does not come to its header is taken where two hosts show the same, and nobody is excluded for it. One
// host alone, however many its endpoints, lies, and so does who shows another one than two do.
func TestBodiesThatTwoHostsShowAlike(t *testing.T) {
	type node = func(map[string]any)
	const none, proven, alike, oneWord = "none", "proven", "alike", "one word"
	other := inFullButOther
	for name, c := range map[string]struct {
		nodes   []node // nil is honest
		oneHost bool   // two endpoints of the first
		want    string
		from    Source
		lied    []int
	}{
		"all of three":          {[]node{other, other, other}, false, alike, "http://a/", nil},
		"both":                  {[]node{other, other}, false, alike, "http://a/", nil},
		"one of three":          {[]node{other, nil, nil}, false, proven, "http://b/", []int{0}},
		"one of two":            {[]node{other, nil}, false, proven, "http://b/", []int{0}},
		"two of three":          {[]node{other, other, nil}, false, proven, "http://c/", []int{0, 1}},
		"the only one":          {[]node{other}, false, none, "", []int{0}},
		"two of one host":       {[]node{other}, true, none, "", []int{0, 1}},
		"two that differ":       {[]node{other, withOtherHash(other)}, false, none, "", []int{0, 1}},
		"two and one that lies": {[]node{withOtherHash(other), other, other}, false, alike, "http://b/", []int{0}},
		"types that none knows": {[]node{ofNoKnownType, ofNoKnownType}, false, alike, "http://a/", nil},
		"a liar beside such two": {[]node{withOtherHash(ofNoKnownType), ofNoKnownType, ofNoKnownType}, false, alike,
			"http://b/", nil},
		"a liar beside such one": {[]node{withOtherHash(other), ofNoKnownType}, false, oneWord, "http://b/", []int{0}},
		"two such of one host":   {[]node{ofNoKnownType}, true, oneWord, "http://a/", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(len(c.nodes), 50)
				client, reg := dialFakes(t, func(cfg *Config) {
					if c.oneHost {
						cfg.URLs = append(cfg.URLs, secret.MustURL("http://a/b"))
					}
				}, nodes...)
				for i, change := range c.nodes {
					if change != nil {
						nodes[i].obey(showing(truth, change))
					}
				}
				block, err := client.Block(t.Context(), truth.ref(40).Hash)
				if (err == nil) != (c.want != none) {
					t.Fatal(err)
				}
				if err == nil && (block.BodyProven() != (c.want == proven) || block.Source != c.from ||
					block.Txs[0].Hash != chain.Hash(truth[40].tx)) {
					t.Errorf("proven %t, from %s: %+v", block.BodyProven(), block.Source, block.Txs)
				}
				if n := gauge(t, reg, "evm_unknown_bodies_total"); n != map[string]float64{alike: 1}[c.want] {
					t.Errorf("%v blocks were taken as two hosts show them", n)
				}
				for i, e := range client.Endpoints() {
					lied := excluded(client, i, ForBodies) == ReasonLied
					if lied != slices.Contains(c.lied, i) || !lied && len(e.Excluded) > 0 {
						t.Errorf("endpoint %d is excluded: %+v", i, e.Excluded)
					}
				}
			})
		})
	}
}

// A list of transactions that come to their hashes, and not to the header's root, is not the block's, whoever shows the
// same.
func TestBodiesThatTwoHostsLeaveOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		empty := *truth[40]
		empty.json = maps.Clone(empty.json)
		empty.json["transactions"] = []any{}
		for _, n := range nodes {
			n.chain = slices.Clone(truth)
			n.chain[40] = &empty
		}
		c, _ := dialFakes(t, nil, nodes...)
		if block, err := c.Block(t.Context(), truth.ref(40).Hash); err == nil {
			t.Errorf("believed: %+v", block.Txs)
		}
		for i := range nodes {
			if r := excluded(c, i, ForBodies); r != ReasonLied {
				t.Errorf("endpoint %d is excluded for %q", i, r)
			}
		}
	})
}

// What a node does not show, or not as others do, is no lie. Another one is asked for bodies then, and for nothing
// else; where there is no other its word is believed.
func TestWhatIsNotShownIsNoLie(t *testing.T) {
	for name, change := range map[string]func(tx map[string]any){
		"no gas":         func(tx map[string]any) { tx["gas"] = nil },
		"no type":        func(tx map[string]any) { delete(tx, "type") },
		"no receiver":    func(tx map[string]any) { delete(tx, "to") },
		"another name":   func(tx map[string]any) { tx["data"] = tx["input"]; delete(tx, "input") },
		"not a parity":   func(tx map[string]any) { delete(tx, "yParity"); tx["v"] = "0x93" },
		"nor is it here": func(tx map[string]any) { tx["yParity"] = "0x93" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(2, 50)
				c, reg := dialFakes(t, nil, nodes...)
				c.pool.leader.Store(c.pool.public[0])
				nodes[0].obey(showing(truth, change))
				for at := range 3 {
					block, err := c.Block(t.Context(), truth.ref(40+at).Hash)
					if err != nil || !block.BodyProven() || block.Source != "http://b/" {
						t.Fatalf("proven %t, from %s, %v", block.BodyProven(), block.Source, err)
					}
				}
				all := c.Endpoints()[0].Excluded
				if len(all) != 1 || all[0].Purpose != ForBodies || all[0].Reason != ReasonUnreadable {
					t.Errorf("excluded for %+v", all)
				}
				if n := nodes[0].count(methodBlock); n != 1 {
					t.Errorf("it was asked for %d bodies", n)
				}
				if n := gauge(t, reg, "evm_failovers_total"); n != 0 || c.pool.leader.Load() != c.pool.public[0] {
					t.Error("it is not the first to be asked any more")
				}
				time.Sleep(c.pool.cfg.Cooldown + 2*c.pool.cfg.ProbeInterval)
				if r := excluded(c, 0, ForBodies); r != "" {
					t.Errorf("after the cool-down it is excluded for %s", r)
				}
				block, err := c.Elsewhere("http://b/").Block(t.Context(), truth.ref(40).Hash)
				if err != nil || block.BodyProven() || len(c.Endpoints()[0].Excluded) > 0 {
					t.Errorf("alone: proven %t, %v, excluded for %+v", block.BodyProven(), err,
						c.Endpoints()[0].Excluded)
				}
			})
		})
	}
}

// A list that is not shown was empty, or nobody can tell; one that is shown and is another contradicts the hash.
func TestListsThatAreNotShown(t *testing.T) {
	access := types.AccessList{{Address: common.Address{1}, StorageKeys: []common.Hash{{2}}}}
	to := common.Address(venue)
	listed := types.MustSignNewTx(testKey(t), types.LatestSignerForChainID(big.NewInt(fakeChainID)),
		&types.DynamicFeeTx{ChainID: big.NewInt(fakeChainID), Gas: 100_000, To: &to, AccessList: access})
	keysAs := func(name string) func(map[string]any) {
		return func(tx map[string]any) {
			entry := tx["accessList"].([]any)[0].(map[string]any)
			entry[name] = entry["storageKeys"]
			delete(entry, "storageKeys")
		}
	}
	noList := func(tx map[string]any) { delete(tx, "accessList") }
	type change = func(map[string]any)
	for name, c := range map[string]struct {
		first, second       change
		unknown, unfit, lie bool
	}{
		"no list":                   {noList, nil, true, false, false},
		"keys by another name":      {keysAs("keys"), nil, true, false, false},
		"no list where it is empty": {nil, noList, false, false, false},
		"another list":              {func(tx map[string]any) { tx["accessList"] = []any{} }, nil, false, true, false},
		"another beside no list":    {noList, inFullButOther, false, true, false},
		"another hash":              {nil, withOtherHash(noList), false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			block, err := decodeBlock(bodyOf(t, types.Transactions{listed, fakeTx(0, nil)}, func(tx map[string]any) {
				change := c.second
				if tx["transactionIndex"] == hexutil.Uint64(0) {
					change = c.first
				}
				if change != nil {
					change(tx)
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			_, lie := errors.AsType[*lieError](block.checkBody())
			if lie != c.lie || block.body.unreadable() != c.unknown || (block.body.unfit != "") != c.unfit ||
				block.BodyProven() == (lie || c.unknown || c.unfit) {
				t.Errorf("lie %t, %+v", lie, block.body)
			}
		})
	}
}

// A body that is proven says nothing of another block of the same number.
func TestBodyOfAnotherBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(3, 50)
		nodes[1].chain = newFakeChain(50, 1, func(int) int { return 0 })
		c, _ := dialFakes(t, nil, nodes...)
		c.pool.leader.Store(c.pool.public[0])
		nodes[0].obey(showing(truth, ofNoKnownType))
		block, err := c.BlockAt(t.Context(), 40)
		if err != nil || block.BlockRef != truth.ref(40) || !block.BodyProven() || block.Source != "http://c/" {
			t.Errorf("block %+v, proven %t, from %s, %v", block.BlockRef, block.BodyProven(), block.Source, err)
		}
	})
}

// Whose body contradicts itself, of a block that nobody else has, keeps nobody from the number's block.
func TestLyingBodyOfAnotherBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		nodes[0].chain = newFakeChain(50, 1, func(int) int { return 0 })
		c, _ := dialFakes(t, nil, nodes...)
		c.pool.leader.Store(c.pool.public[0])
		nodes[0].obey(showing(nodes[0].chain, inFullButOther))
		block, err := c.BlockAt(t.Context(), 40)
		if err != nil || block.BlockRef != truth.ref(40) || excluded(c, 0, ForBodies) != ReasonLied {
			t.Errorf("block %+v, %v, excluded for %q", block.BlockRef, err, excluded(c, 0, ForBodies))
		}
	})
}

// Everybody is asked for a body that nobody can prove, and for a while two hosts are asked for the next ones.
func TestNotEverybodyIsAskedForEachBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(4, 50)
		for _, n := range nodes {
			n.obey(showing(truth, ofNoKnownType))
		}
		transport, cfg := newFakeNet(t, nodes...)
		var lines strings.Builder
		c, err := dial(t.Context(), fakeChainID, cfg, zerolog.New(&lines), NewMetrics(prometheus.NewRegistry()),
			transport)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		read := func(number int, want ...int) {
			t.Helper()
			block, err := c.Block(t.Context(), truth.ref(number).Hash)
			if err != nil || block.BodyProven() {
				t.Fatalf("proven %t, %v", block.BodyProven(), err)
			}
			var asked []int
			for _, n := range nodes {
				asked = append(asked, n.count(methodBlock))
			}
			if !slices.Equal(asked, want) {
				t.Errorf("after block %d: %v requests, want %v", number, asked, want)
			}
		}
		read(40, 1, 1, 1, 1)
		read(41, 2, 2, 1, 1)
		read(40, 3, 3, 1, 1)
		if n := strings.Count(lines.String(), "two hosts show the same"); n != 1 {
			t.Errorf("it was said %d times", n)
		}
		time.Sleep(cfg.Cooldown)
		read(42, 4, 4, 2, 2)
	})
}
