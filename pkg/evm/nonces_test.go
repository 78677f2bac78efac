package evm

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"perpkeeper/pkg/chain"
)

// counting answers nonces at blocks, as many as the account's first byte times the block; those below a block are
// pruned, and batches above a size refused.
func counting(pruned uint64, most int) script {
	return func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
		switch method {
		case "batch":
			var size int
			if json.Unmarshal(params[0], &size) == nil && size > most {
				return nil, refusal(-32600, "batch too large"), true
			}
		case methodNonce:
			account := hexutil.MustDecode(unquote(params[0]))
			block := hexutil.MustDecodeUint64(unquote(params[1]))
			if block < pruned {
				return nil, refusal(-32000, "missing trie node 12ab (path ) state is not available"), true
			}
			return hexutil.Uint64(uint64(account[0]) * block), nil, true
		}
		return nil, nil, false
	}
}

func asking(count int) (asked []AccountAt, want []uint64) {
	for i := range count {
		a := AccountAt{chain.Address{byte(1 + i%3)}, uint64(1000 + i)}
		asked, want = append(asked, a), append(want, uint64(a.Account[0])*a.Block)
	}
	return asked, want
}

// Nonces come in the order they were asked for, in batches no larger than a node takes, and from whoever keeps states
// so old. Who does not is asked once.
func TestOldNonces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(2, 4)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].obey(counting(1020, 100))
		nodes[1].obey(counting(0, 7))
		c.pool.public[1].vitals.latency = 1000
		for range 3 {
			asked, want := asking(40)
			if got, err := c.OldNonces(t.Context(), asked); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%v, %v; want %v", got, err, want)
			}
		}
		if nodes[0].count("batch") != 1 || excluded(c, 0, ForOldStates) != ReasonPruned ||
			excluded(c, 1, ForOldStates) != "" {
			t.Errorf("the pruned node was asked %d times, and is excluded for %q", nodes[0].count("batch"),
				excluded(c, 0, ForOldStates))
		}
		one, want := asking(1)
		if got, err := c.OldNonces(t.Context(), one); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("one: %v, %v", got, err)
		}
	})
}

// That nobody keeps a state so old is told apart from nobody's answering.
func TestNobodyKeepsOldStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(2, 4)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].obey(counting(1<<40, 100))
		nodes[1].obey(counting(1<<40, 100))
		asked, _ := asking(9)
		if _, err := c.OldNonces(t.Context(), asked); !NoState(err) {
			t.Errorf("pruned: %v", err)
		}
		if _, err := c.SettledNonces(t.Context(), asked); !NoState(err) || !Undecided(err) {
			t.Errorf("pruned, two asked: %v", err)
		}
		nodes[1].obey(refuse(&fault{status: 500}, "batch"))
		if _, err := c.OldNonces(t.Context(), asked); err == nil || NoState(err) {
			t.Errorf("one is pruned, one does not answer: %v", err)
		}
	})
}

// Two hosts have to say the same of all of them; who says otherwise than two others is excluded for it alone.
func TestSettledNonces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, _ := fakes(3, 4)
		c, _ := dialFakes(t, nil, nodes...)
		asked, want := asking(9)
		for _, n := range nodes {
			n.obey(counting(0, 100))
		}
		nodes[0].obey(func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
			return hexutil.Uint64(7), nil, method == methodNonce && unquote(params[1]) == "0x3ec"
		})
		nodes[0].obey(alsoCounting(nodes[0].script))
		got, err := c.SettledNonces(t.Context(), asked)
		if err != nil || !reflect.DeepEqual(got, want) || excluded(c, 0, ForOldStates) != ReasonContradicted ||
			excluded(c, 0, ForNonces) != "" {
			t.Errorf("%v, %v; want %v; excluded for %q", got, err, want, excluded(c, 0, ForOldStates))
		}
		nodes[1].obey(counting(1<<40, 100))
		if got, err := c.SettledNonces(t.Context(), asked); !Undecided(err) || NoState(err) {
			t.Errorf("one is pruned, two contradict each other: %v, %v", got, err)
		}
		if got, err := c.SettledNonces(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("nothing: %v, %v", got, err)
		}
	})
}

// alsoCounting lets a node count where a script leaves it alone.
func alsoCounting(first script) script {
	return func(ctx context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
		if result, f, done := first(ctx, method, params); done {
			return result, f, true
		}
		return counting(0, 100)(ctx, method, params)
	}
}
