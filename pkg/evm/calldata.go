package evm

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/pkg/chain"
)

// Calldata returns what a mined transaction of a block was called with; its hash has been recomputed, so it is what was
// signed. NotFound(err) where no endpoint that answers knows the transaction in that block.
func (r Reader) Calldata(ctx context.Context, tx chain.Tx) ([]byte, error) {
	what := fmt.Sprintf("transaction %s of block %d", tx.Hash, tx.Block)
	data, _, err := ask(ctx, r, question[[]byte]{
		method: methodTransaction, args: []any{tx.Hash}, first: r.pool.memory.server(tx.BlockHash),
		read: func(raw json.RawMessage) ([]byte, error) { return readCalldata(raw, tx, what) },
	})
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", what, err)
	}
	return data, nil
}

func readCalldata(raw []byte, tx chain.Tx, what string) ([]byte, error) {
	if isNull(raw) {
		return nil, &notFoundError{what}
	}
	var place txReply
	c := cursor{raw: raw}
	if err := c.transaction(&place); err != nil {
		return nil, err
	}
	if place.blockHash != tx.BlockHash {
		return nil, &notFoundError{what}
	}
	var signed types.Transaction
	if err := signed.UnmarshalJSON(raw); err != nil {
		return nil, malformed("reading the transaction: %v", err)
	}
	if hash := chain.Hash(signed.Hash()); hash != tx.Hash {
		return nil, lie("transaction %s for %s", hash, tx.Hash)
	}
	return signed.Data(), nil
}
