package evmnode

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// What calls would need of the lane's gas waits, though the block is empty; payments go on, and only they: coins, no
// data, nobody's code. Without a lane all go.
func TestPaymentLane(t *testing.T) {
	c := start(t, Config{Manual: true, GasLimit: 1_240_000, PaymentLane: 20}, 5) // 992 000 for calls
	send := func(account int, to common.Address, value int64, data []byte) common.Hash {
		t.Helper()
		price := big.NewInt(DefaultMinGasPrice)
		tx, err := types.SignNewTx(c.keys[account], c.signer, &types.DynamicFeeTx{ChainID: c.ChainID(),
			GasTipCap: price, GasFeeCap: price, Gas: 1_000_000, To: &to, Value: big.NewInt(value), Data: data})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.http.SendTransaction(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		return tx.Hash()
	}
	waiting := []common.Hash{
		send(0, emitter, 0, make([]byte, 32)), // a call
		send(1, c.account(1), 0, nil),         // no coins
		send(2, c.account(2), 1, []byte{1}),   // data
		send(3, emitter, 1, nil),              // a contract
	}
	payment := send(4, c.account(4), 1, nil)
	c.mine(1)
	if c.receipt(payment).Status != types.ReceiptStatusSuccessful {
		t.Error("a payment failed")
	}
	for i, hash := range waiting {
		if receipt, err := c.http.TransactionReceipt(t.Context(), hash); err == nil {
			t.Errorf("transaction %d has used %d gas that is kept for payments", i, receipt.GasUsed)
		}
	}
	if err := c.SetPaymentLane(0); err != nil {
		t.Fatal(err)
	}
	c.mine(uint64(len(waiting)))
	for _, hash := range waiting {
		c.receipt(hash)
	}
	if err := c.SetPaymentLane(100); err == nil {
		t.Error("a lane that leaves nothing to calls is accepted")
	}
}
