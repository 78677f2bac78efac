package evmnode

import (
	"bytes"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// SetPaymentLane keeps so many percent of every later block's gas for payments, as BSC does from Jenner on (BEP-703);
// 0 keeps none.
func (n *Node) SetPaymentLane(percent uint64) error {
	if percent >= 100 {
		return fmt.Errorf("a payment lane of %d percent leaves no gas to calls", percent)
	}
	n.paymentLane.Store(percent)
	return nil
}

// callGas is what of a block's gas everything but payments may use, also where nobody pays.
func (n *Node) callGas(limit uint64) uint64 { return limit / 100 * (100 - n.paymentLane.Load()) }

// laneContract and laneGetter are how BSC tells the share, in ten-thousandths; there is no such contract before the
// fork.
var (
	laneContract = common.HexToAddress("0x2007")
	laneGetter   = crypto.Keccak256([]byte("getPaymentLaneRatio()"))[:4]
)

// laneShare answers calls of the contract that has the lane's share.
func (n *Node) laneShare(msg *core.Message) (answer []byte, is bool) {
	percent := n.paymentLane.Load()
	if percent == 0 || msg.To == nil || *msg.To != laneContract || !bytes.Equal(msg.Data, laneGetter) {
		return nil, false
	}
	return common.BigToHash(new(big.Int).SetUint64(percent * 100)).Bytes(), true
}

// isPayment reports whether a transaction may use the payment lane: it moves coins, carries no data, and its receiver
// has no code.
func isPayment(tx *types.Transaction, st *state.StateDB) bool {
	return tx.To() != nil && tx.Value().Sign() > 0 && len(tx.Data()) == 0 && st.GetCodeSize(*tx.To()) == 0
}
