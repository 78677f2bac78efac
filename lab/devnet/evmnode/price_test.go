package evmnode

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

// When the least price rises the pool forgets what pays less, nothing cheaper is taken any more, and clients are told.
func TestMinGasPriceRises(t *testing.T) {
	c := start(t, Config{Manual: true}, 2)
	cheap := c.emit(0, 1) // 0.1 gwei
	c.SetMinGasPrice(200_000_000)
	c.mine(1)
	if _, _, err := c.http.TransactionByHash(t.Context(), cheap.Hash()); err == nil {
		t.Error("a transaction below the least price is still known")
	}
	price, err := c.http.SuggestGasPrice(t.Context())
	if err != nil || price.Uint64() != 200_000_000 {
		t.Errorf("suggested are %v, %v", price, err)
	}
	err = c.http.SendTransaction(t.Context(), c.sign(1, 0, 19, &emitter, nil))
	if err == nil || !strings.Contains(err.Error(), "transaction gas price below minimum") {
		t.Errorf("a cheap one is answered with %v", err)
	}
	dear := c.sign(0, 0, 20, &emitter, make([]byte, 32))
	if err := c.http.SendTransaction(t.Context(), dear); err != nil {
		t.Fatal(err)
	}
	c.mine(1)
	if r := c.receipt(dear.Hash()); r.Status != types.ReceiptStatusSuccessful {
		t.Error("a dear one failed")
	}
}
