package evm

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

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

// Call executes a message on the state after a block, named by its hash, and returns the output. RevertData tells a revert. Nodes that
// keep no old states refuse old blocks.
func (c *Client) Call(ctx context.Context, to chain.Address, data []byte, block chain.Hash) ([]byte, error) {
	var out hexBytes
	if err := c.ask(ctx, &out, "eth_call", callArg{To: to, Data: data}, blockArg{block}); err != nil {
		return nil, fmt.Errorf("calling %s at block %s: %w", to, block, err)
	}
	return out, nil
}

// Simulate executes what a transaction would execute, on the newest state, and returns nil if it would succeed. RevertData tells a revert and
// its reason. Gas is the transaction's limit; value is in wei.
func (c *Client) Simulate(ctx context.Context, from, to chain.Address, data []byte, gas uint64, value perp.Uint) error {
	arg := callArg{From: &from, To: to, Gas: hexNumber(gas), Data: data}
	if !value.IsZero() {
		arg.Value = (*hexutil.Big)(value.Big())
	}
	var out hexBytes
	if err := c.ask(ctx, &out, "eth_call", arg, Latest); err != nil {
		return fmt.Errorf("simulating a transaction to %s: %w", to, err)
	}
	return nil
}

// NonceAt returns how many transactions an account has sent: the nonce of its next one. A gap in the pool is invisible in Pending.
func (c *Client) NonceAt(ctx context.Context, account chain.Address, tag Tag) (uint64, error) {
	var nonce hexNumber
	if err := c.ask(ctx, &nonce, "eth_getTransactionCount", account, tag); err != nil {
		return 0, fmt.Errorf("asking for the %s nonce of %s: %w", tag, account, err)
	}
	return uint64(nonce), nil
}

// Balance returns an account's balance in wei, on the newest state.
func (c *Client) Balance(ctx context.Context, account chain.Address) (perp.Uint, error) {
	var balance hexutil.Big
	if err := c.ask(ctx, &balance, "eth_getBalance", account, Latest); err != nil {
		return perp.Uint{}, fmt.Errorf("asking for the balance of %s: %w", account, err)
	}
	return perp.UintFromBig((*big.Int)(&balance))
}

// GasPrice returns the price in wei per gas that the node suggests.
func (c *Client) GasPrice(ctx context.Context) (uint64, error) {
	var price hexNumber
	if err := c.ask(ctx, &price, "eth_gasPrice"); err != nil {
		return 0, fmt.Errorf("asking for the gas price: %w", err)
	}
	return uint64(price), nil
}
