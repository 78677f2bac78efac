package evm_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
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

// Who has signed is asked of the signature. Who shows a block otherwise is excluded; what receipts say of it matters to
// nobody.
func TestSenderIsRecovered(t *testing.T) {
	for method, forged := range map[string]bool{"eth_getBlockByHash": true, "eth_getBlockReceipts": false} {
		t.Run(method, func(t *testing.T) {
			d := startDevnet(t, evmnode.Config{})
			d.emitBlock(2)
			c := dial(t, d.config(startForger(t, d, method), d.HTTPURL()))
			read := func(from evm.Reader) (chain.Tx, error) {
				block, err := from.BlockWithReceipts(t.Context(), d.head().Hash)
				if err != nil {
					t.Fatal(err)
				}
				receipts, err := from.Receipts(t.Context(), block)
				if err != nil {
					t.Fatal(err)
				}
				return c.Verified(block, receipts[1])
			}
			tx, err := read(c.Excluding(c.Endpoints()[1].Source))
			if err != nil || tx.From != d.account() || lied(c.Endpoints()[0], evm.ForBodies) != forged {
				t.Errorf("from %s, %v, excluded for %+v", tx.From, err, c.Endpoints()[0].Excluded)
			}
			if tx, err = read(c.Reader); err != nil || tx.From != d.account() || len(c.Endpoints()[1].Excluded) > 0 {
				t.Errorf("asked again: from %s, %v, excluded for %+v", tx.From, err, c.Endpoints()[1].Excluded)
			}
		})
	}
}
