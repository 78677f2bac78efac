package scanner

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// multicallABI is what the chain's library makes of Multicall3's function.
var multicallABI = func() abi.ABI {
	parsed, err := abi.JSON(strings.NewReader(`[{"type":"function","name":"aggregate","stateMutability":"payable",
		"inputs":[{"name":"calls","type":"tuple[]","components":[
			{"name":"target","type":"address"},{"name":"callData","type":"bytes"}]}],
		"outputs":[{"name":"blockNumber","type":"uint256"},{"name":"returnData","type":"bytes[]"}]}]`))
	if err != nil {
		panic(err)
	}
	return parsed
}()

// multicallNode executes calls as a node does whose store holds each word's key as its value. It has Multicall3 or not.
type multicallNode struct {
	t           *testing.T
	mutex       sync.Mutex
	has         bool
	calls       int // requests
	alone       int // of these, words that were read by themselves
	most        int // words in one request
	returnsLong bool
}

func (n *multicallNode) Call(_ context.Context, to chain.Address, data []byte, _ chain.Hash) ([]byte, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.calls++
	switch {
	case to != multicall3:
		n.alone++
		return data[4:], nil
	case !n.has:
		return nil, nil
	}
	method := multicallABI.Methods["aggregate"]
	if !slices.Equal(data[:4], method.ID) {
		n.t.Fatalf("the function is %x, want %x", data[:4], method.ID)
	}
	args, err := method.Inputs.Unpack(data[4:])
	if err != nil {
		n.t.Fatal(err)
	}
	var returned [][]byte
	type call struct {
		Target   [20]byte
		CallData []byte
	}
	calls, is := abi.ConvertType(args[0], new([]call)).(*[]call)
	if !is {
		n.t.Fatalf("the arguments are %T", args[0])
	}
	for _, call := range *calls {
		if chain.Address(call.Target) != store || len(call.CallData) != 36 {
			n.t.Fatalf("a call of %x with %d bytes", call.Target, len(call.CallData))
		}
		returned = append(returned, call.CallData[4:])
	}
	n.most = max(n.most, len(returned))
	if n.returnsLong {
		returned[0] = make([]byte, 64)
	}
	out, err := method.Outputs.Pack(big.NewInt(7), returned)
	if err != nil {
		n.t.Fatal(err)
	}
	return out, nil
}

// Words are read by one call for as many as it takes, as the chain's own library reads them; where there is no
// Multicall3 by one each.
func TestWordsReadTogether(t *testing.T) {
	words := make([]perp.Word, mostTogether+1)
	for i := range words {
		words[i] = perp.Word{Key: chain.U64(uint64(1000 + i)).Bytes32(), Kind: perp.UintWord}
	}
	for name, c := range map[string]struct {
		has                bool
		calls, alone, most int
	}{
		"with Multicall3":    {true, 2, 0, mostTogether},
		"without Multicall3": {false, 1 + len(words), len(words), 0},
	} {
		t.Run(name, func(t *testing.T) {
			node := &multicallNode{t: t, has: c.has}
			values, err := dataStore{at: store, caller: node}.all(t.Context(), words, at(7))
			if err != nil || len(values) != len(words) {
				t.Fatalf("%d values, %v", len(values), err)
			}
			for i, value := range values {
				if value != words[i].Key {
					t.Fatalf("word %d is %s, want %s", i, value, words[i].Key)
				}
			}
			if node.calls != c.calls || node.alone != c.alone || node.most != c.most {
				t.Errorf("%d requests, %d words alone, %d in one request", node.calls, node.alone, node.most)
			}
		})
	}
	node := &multicallNode{t: t, has: true, returnsLong: true}
	values, err := dataStore{at: store, caller: node}.all(t.Context(), words[:3], at(7))
	if err == nil || errors.Is(err, errNoMulticall) {
		t.Errorf("an answer that is no word is taken: %v, %v", values, err)
	}
}
