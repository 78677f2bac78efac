package evm

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"perpkeeper/pkg/chain"
)

// answering answers eth_call with the message itself, padded to a word, but for messages with faults of their own;
// batches above a size are refused.
func answering(most int, faults map[byte]*fault) script {
	return func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
		switch method {
		case "batch":
			var size int
			if json.Unmarshal(params[0], &size) == nil && size > most {
				return nil, refusal(-32600, "batch too large"), true
			}
		case methodCall:
			var arg struct {
				Input hexutil.Bytes `json:"input"`
			}
			if err := json.Unmarshal(params[0], &arg); err != nil || len(arg.Input) != 1 {
				return nil, refusal(-32602, "bad call"), true
			}
			if f := faults[arg.Input[0]]; f != nil {
				return nil, f, true
			}
			return hexutil.Bytes(append(make([]byte, 31), arg.Input[0])), nil, true
		}
		return nil, nil, false
	}
}

func messages(n int) (data [][]byte) {
	for i := range n {
		data = append(data, []byte{byte(i)})
	}
	return data
}

// Many calls come back in their order, in batches no larger than the node takes; what one endpoint cannot answer
// another does, and a revert is an answer.
func TestCalls(t *testing.T) {
	nodes, _ := fakes(2, 4)
	nodes[0].inject(answering(7, map[byte]*fault{3: refusal(-32000, "internal error"),
		5: refusal(3, "execution reverted")}))
	nodes[1].inject(answering(100, map[byte]*fault{5: refusal(3, "execution reverted")}))
	c, _ := dialFakes(t, nil, nodes...)
	for range 3 { // whichever endpoint is asked first
		results, err := c.Calls(t.Context(), chain.Address{1}, messages(40), chain.Hash{9})
		if err != nil || len(results) != 40 {
			t.Fatalf("%d results, %v", len(results), err)
		}
		for i, r := range results {
			_, reverted := RevertData(r.Err)
			if i == 5 && !reverted || i != 5 && (r.Err != nil || len(r.Out) != 32 || r.Out[31] != byte(i)) {
				t.Errorf("message %d: %x, %v", i, r.Out, r.Err)
			}
		}
	}
}

// A node that has not the state says so in one error for all, and is told from one that is away.
func TestNoState(t *testing.T) {
	for text, want := range map[string]bool{
		"missing trie node 7c1 (path ) state 0x7c1 is not available, not found": true,
		"header not found": true,
		"required historical state unavailable (reexec=128)":    true,
		"distance to target block exceeds maximum proof window": true,
		"this request requires an archive node":                 true,
		"state 0xabc has been pruned":                           true,
		"execution reverted: header not found":                  false,
		"internal error":                                        false,
		"the method eth_call does not exist/is not available":   false,
		"historical state 0x12 is not available":                true,
		"old data not available due to pruning":                 true,
	} {
		nodes, _ := fakes(2, 4)
		nodes[0].inject(refuse(refusal(-32000, text), methodCall))
		nodes[1].inject(refuse(refusal(-32000, text), methodCall))
		c, _ := dialFakes(t, nil, nodes...)
		_, err := c.Calls(t.Context(), chain.Address{1}, messages(3), chain.Hash{9})
		_, single := c.Call(t.Context(), chain.Address{1}, []byte{1}, chain.Hash{9})
		if strings.HasPrefix(text, revertText) {
			if NoState(single) {
				t.Errorf("%q is taken for a missing state", text)
			}
			continue
		}
		if err == nil || NoState(err) != want || NoState(single) != want {
			t.Errorf("%q: %t and %t, want %t (%v)", text, NoState(err), NoState(single), want, err)
		}
	}
	nodes, _ := fakes(2, 4)
	nodes[0].inject(refuse(refusal(-32000, "missing trie node"), methodCall))
	nodes[1].inject(refuse(&fault{status: 502, text: "away"}, methodCall))
	c, _ := dialFakes(t, nil, nodes...)
	if _, err := c.Call(t.Context(), chain.Address{1}, []byte{1}, chain.Hash{9}); err == nil || NoState(err) {
		t.Errorf("an endpoint that is away may have the state: %v", err)
	}
}
