package evmnode

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/holiman/uint256"
)

// callArgs is the message of eth_call.
type callArgs struct {
	From     common.Address  `json:"from"`
	To       *common.Address `json:"to"`
	Gas      hexutil.Uint64  `json:"gas"`
	GasPrice *hexutil.Big    `json:"gasPrice"`
	Value    *hexutil.Big    `json:"value"`
	Data     hexutil.Bytes   `json:"data"`
	Input    hexutil.Bytes   `json:"input"` // The newer name of data; wins if both are given.
}

// message is what is executed. Without a gas limit it gets what a call may have at most.
func (c callArgs) message() *core.Message {
	price := amount(c.GasPrice)
	msg := &core.Message{
		From: c.From, To: c.To, Value: amount(c.Value), GasLimit: min(orDefault(uint64(c.Gas), callGasCap), callGasCap),
		GasPrice: price, GasFeeCap: price, GasTipCap: price, Data: c.Data,
	}
	if len(c.Input) > 0 {
		msg.Data = c.Input
	}
	return msg.SkipNonceCheck().SkipEOACheck().SkipGasLimitCapCheck()
}

// amount takes numbers beyond 256 bits as their rest, like every node.
func amount(b *hexutil.Big) *uint256.Int {
	if b == nil {
		return new(uint256.Int)
	}
	u, _ := uint256.FromBig(b.ToInt())
	return u
}
