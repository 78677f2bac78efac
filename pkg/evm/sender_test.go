package evm_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/services/devnet/evmnode"
)

// startForger serves a node's answers to a method with another sender than the true one.
func startForger(t *testing.T, d *devnet, method string) string {
	t.Helper()
	signed, other := strings.ToLower(d.account().Hex()), chain.Address{0xba, 19: 0xd}
	return startProxy(t, d.HTTPURL(), func(request, answer []byte) []byte {
		if !bytes.Contains(request, []byte(method)) {
			return answer
		}
		return bytes.ReplaceAll(answer, []byte(`"from":"`+signed), []byte(`"from":"`+other.Hex()))
	})
}

func lied(e evm.EndpointStatus, p evm.Purpose) bool {
	return slices.ContainsFunc(e.Excluded,
		func(x evm.Exclusion) bool { return x.Purpose == p && x.Reason == evm.ReasonLied })
}

// Who has signed is asked of the signature, and who says otherwise is excluded.
func TestSenderIsRecovered(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	d.emitBlock(2)
	honest := dial(t, d.config(d.HTTPURL()))
	block, err := honest.Block(t.Context(), d.head().Hash)
	if err != nil || !block.BodyProven() || honest.Sender(block, 1) != d.account() ||
		len(honest.Endpoints()[0].Excluded) > 0 {
		t.Fatalf("%+v, %v, %+v", block.Txs, err, honest.Endpoints()[0].Excluded)
	}
	c := dial(t, d.config(startForger(t, d, "eth_getBlockByHash")))
	block, err = c.Block(t.Context(), d.head().Hash)
	if err != nil || block.Txs[1].From == d.account() {
		t.Fatalf("%+v, %v", block.Txs, err)
	}
	if from := c.Sender(block, 1); from != d.account() || !lied(c.Endpoints()[0], evm.ForBodies) {
		t.Errorf("from %s, excluded for %+v", from, c.Endpoints()[0].Excluded)
	}
}

// Where body and receipts name different senders the one that is wrong is found, and the receipts have the right one.
func TestSendersOfBodyAndReceipts(t *testing.T) {
	for method, purpose := range map[string]evm.Purpose{
		"eth_getBlockByHash": evm.ForBodies, "eth_getBlockReceipts": evm.ForReceipts,
	} {
		t.Run(method, func(t *testing.T) {
			d := startDevnet(t, evmnode.Config{})
			d.emitBlock(2)
			c := dial(t, d.config(startForger(t, d, method), d.HTTPURL()))
			forger := c.Elsewhere(c.Endpoints()[1].Source)
			from := forger
			if purpose == evm.ForReceipts { // the body is honest
				from = c.Reader
			}
			block, err := from.Block(t.Context(), d.head().Hash)
			if err != nil {
				t.Fatal(err)
			}
			receipts, proven, err := forger.Receipts(t.Context(), block)
			if purpose == evm.ForReceipts {
				if err == nil {
					t.Error("a forged sender is believed")
				}
				receipts, proven, err = c.Receipts(t.Context(), block)
			}
			if err != nil || !proven || receipts[0].From != d.account() || receipts[1].From != d.account() {
				t.Errorf("%+v, proven %t, %v", receipts, proven, err)
			}
			if all := c.Endpoints(); !lied(all[0], purpose) || len(all[1].Excluded) > 0 {
				t.Errorf("excluded: %+v, %+v", all[0].Excluded, all[1].Excluded)
			}
		})
	}
}
