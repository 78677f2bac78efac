package evm

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"perpkeeper/pkg/chain"
)

// hexBytes are bytes as JSON-RPC writes them.
type hexBytes = hexutil.Bytes

// blockArg is a block by hash, as calls on its state take it (EIP-1898).
type blockArg struct {
	Hash chain.Hash `json:"blockHash"`
}

// Tag names a state of the chain as it moves.
type Tag string

// The states a nonce or balance can be asked for at.
const (
	Latest    Tag = "latest"
	Pending   Tag = "pending" // with what waits in that node's pool
	Finalized Tag = "finalized"
)

// callArg is a message that is executed and forgotten.
type callArg struct {
	From  *chain.Address `json:"from,omitempty"`
	To    chain.Address  `json:"to"`
	Gas   hexNumber      `json:"gas,omitempty"`
	Value *hexutil.Big   `json:"value,omitempty"`
	Data  hexBytes       `json:"input"`
}

// Call executes a message on the state after a block, named by its hash, and returns the output. RevertData finds a
// revert. Nodes that keep no old states refuse old blocks.
func (r Reader) Call(ctx context.Context, to chain.Address, data []byte, block chain.Hash) ([]byte, error) {
	q := scalar[hexBytes](methodCall, callArg{To: to, Data: data}, blockArg{block})
	q.first = r.pool.memory.server(block)
	out, _, err := ask(ctx, r, q)
	if err != nil {
		return nil, fmt.Errorf("calling %s at block %s: %w", to, block, err)
	}
	return out, nil
}

// Simulate executes what a transaction would execute, on the newest state, and returns nil if it would succeed.
// RevertData finds a revert and its reason. Gas is the transaction's limit; value is in wei.
func (r Reader) Simulate(ctx context.Context, from, to chain.Address, data []byte, gas uint64,
	value chain.Uint) (Source, error) {
	arg := callArg{From: &from, To: to, Gas: hexNumber(gas), Data: data}
	if !value.IsZero() {
		arg.Value = (*hexutil.Big)(value.Big())
	}
	_, one, err := ask(ctx, r, scalar[hexBytes](methodCall, arg, Latest))
	if err != nil {
		return "", fmt.Errorf("simulating a transaction to %s: %w", to, err)
	}
	return one.name, nil
}

// NonceAt returns how many transactions an account has sent: the nonce of its next one. A gap in the pool is invisible
// in Pending.
func (r Reader) NonceAt(ctx context.Context, account chain.Address, tag Tag) (uint64, error) {
	nonce, _, err := ask(ctx, r, scalar[hexNumber](methodNonce, account, tag))
	if err != nil {
		return 0, fmt.Errorf("asking for the %s nonce of %s: %w", tag, account, err)
	}
	return uint64(nonce), nil
}

// nonceAtBlock is NonceAt after the block of a number.
func (r Reader) nonceAtBlock(ctx context.Context, account chain.Address, number uint64) (uint64, error) {
	nonce, _, err := ask(ctx, r, scalar[hexNumber](methodNonce, account, hexNumber(number)))
	return uint64(nonce), err
}

// Balance returns an account's balance in wei, on the newest state.
func (r Reader) Balance(ctx context.Context, account chain.Address) (chain.Uint, error) {
	balance, _, err := ask(ctx, r, scalar[hexutil.Big](methodBalance, account, Latest))
	if err != nil {
		return chain.Uint{}, fmt.Errorf("asking for the balance of %s: %w", account, err)
	}
	return chain.UintFromBig((*big.Int)(&balance))
}

// BalanceAt is [Reader.Balance] after the block of a number. Nodes that keep no old states refuse old blocks.
func (r Reader) BalanceAt(ctx context.Context, account chain.Address, number uint64) (chain.Uint, error) {
	balance, _, err := ask(ctx, r, scalar[hexutil.Big](methodBalance, account, hexNumber(number)))
	if err != nil {
		return chain.Uint{}, fmt.Errorf("asking for the balance of %s at block %d: %w", account, number, err)
	}
	return chain.UintFromBig((*big.Int)(&balance))
}

// GasPrice returns the price in wei per gas that the node suggests.
func (r Reader) GasPrice(ctx context.Context) (uint64, error) {
	price, _, err := ask(ctx, r, scalar[hexNumber](methodGasPrice))
	if err != nil {
		return 0, fmt.Errorf("asking for the gas price: %w", err)
	}
	return uint64(price), nil
}
