package evmnode

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// callArgs is the message of eth_call and eth_estimateGas.
type callArgs struct {
	From                 common.Address   `json:"from"`
	To                   *common.Address  `json:"to"`
	Gas                  hexutil.Uint64   `json:"gas"`
	GasPrice             *hexutil.Big     `json:"gasPrice"`
	MaxFeePerGas         *hexutil.Big     `json:"maxFeePerGas"`
	MaxPriorityFeePerGas *hexutil.Big     `json:"maxPriorityFeePerGas"`
	Value                *hexutil.Big     `json:"value"`
	Data                 hexutil.Bytes    `json:"data"`
	Input                hexutil.Bytes    `json:"input"` // The newer name of data; wins if both are given.
	AccessList           types.AccessList `json:"accessList"`
	ChainID              *hexutil.Big     `json:"chainId"`
}

// message checks the arguments. Without a gas limit it gets defaultGas.
func (c callArgs) message(chainID *big.Int, defaultGas uint64) (*core.Message, error) {
	if c.GasPrice != nil && (c.MaxFeePerGas != nil || c.MaxPriorityFeePerGas != nil) {
		return nil, errors.New("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
	}
	if c.ChainID != nil && c.ChainID.ToInt().Cmp(chainID) != 0 {
		return nil, fmt.Errorf("chainId does not match node's (have=%v, want=%v)", c.ChainID, chainID)
	}
	feeCap, tipCap := amount(c.MaxFeePerGas), amount(c.MaxPriorityFeePerGas)
	if c.GasPrice != nil {
		feeCap, tipCap = amount(c.GasPrice), amount(c.GasPrice)
	}
	msg := &core.Message{
		From: c.From, To: c.To, Value: amount(c.Value), GasLimit: min(orDefault(uint64(c.Gas), defaultGas), callGasCap),
		GasPrice: tipCap, GasFeeCap: feeCap, GasTipCap: tipCap, // The base fee is 0, so the tip is the price.
		Data: c.Data, AccessList: c.AccessList,
	}
	if len(c.Input) > 0 {
		msg.Data = c.Input
	}
	return msg.SkipNonceCheck().SkipEOACheck().SkipGasLimitCapCheck(), nil
}

// amount takes numbers beyond 256 bits as their rest, like every node.
func amount(b *hexutil.Big) *uint256.Int {
	if b == nil {
		return new(uint256.Int)
	}
	u, _ := uint256.FromBig(b.ToInt())
	return u
}

// stateOverrides changes accounts before a call, for that call only.
type stateOverrides map[common.Address]struct {
	Nonce     *hexutil.Uint64             `json:"nonce"`
	Code      *hexutil.Bytes              `json:"code"`
	Balance   *hexutil.Big                `json:"balance"`
	State     map[common.Hash]common.Hash `json:"state"`     // Replaces all storage.
	StateDiff map[common.Hash]common.Hash `json:"stateDiff"` // Replaces single slots.
}

func (o *stateOverrides) apply(st *state.StateDB) error {
	if o == nil {
		return nil
	}
	for address, account := range *o {
		if account.State != nil && account.StateDiff != nil {
			return fmt.Errorf("account %s has both 'state' and 'stateDiff'", address)
		}
		if account.Nonce != nil {
			st.SetNonce(address, uint64(*account.Nonce), tracing.NonceChangeUnspecified)
		}
		if account.Code != nil {
			st.SetCode(address, *account.Code, tracing.CodeChangeUnspecified)
		}
		if account.Balance != nil {
			st.SetBalance(address, amount(account.Balance), tracing.BalanceChangeUnspecified)
		}
		if account.State != nil {
			st.SetStorage(address, account.State)
		}
		for slot, value := range account.StateDiff {
			st.SetState(address, slot, value)
		}
	}
	st.Finalise(params.Rules{}) // As if an earlier transaction had made the changes.
	return nil
}
