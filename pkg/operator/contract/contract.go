// Package contract asks contracts on the state after one block, for whoever shows a venue to operators.
package contract

import (
	"context"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// Caller executes calls on the state after a block.
type Caller interface {
	Call(ctx context.Context, contract chain.Address, data []byte, block chain.Hash) ([]byte, error)
}

// Asker asks on the state after a block.
type Asker struct {
	Node  Caller
	Block chain.Hash
}

// Ask returns what a contract answers. A revert is no error: its data is returned, and answered is false, as it is
// where there is no contract.
func (a Asker) Ask(ctx context.Context, to chain.Address, data []byte) (output []byte, answered bool, err error) {
	output, err = a.Node.Call(ctx, to, data, a.Block)
	if reason, reverted := evm.RevertData(err); reverted {
		return reason, false, nil
	}
	return output, err == nil && len(output) > 0, err
}
