package evm

import (
	"context"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// feeHistoryReply is the part of a fee history that chains without a base fee need.
type feeHistoryReply struct {
	Reward [][]*hexutil.Big `json:"reward"`
}

// Tips returns what the gas of the newest blocks was paid beyond the base fee, oldest block first, in wei per gas: of
// each block one price for each share of its gas (in percent, ascending) that was paid so much at most. Blocks without
// transactions are left out.
func (r Reader) Tips(ctx context.Context, blocks int, shares []uint64) ([][]uint64, error) {
	reply, _, err := ask(ctx, r, scalar[feeHistoryReply](methodTips, hexNumber(blocks), Latest, shares))
	if err != nil {
		return nil, fmt.Errorf("asking what the last %d blocks were paid: %w", blocks, err)
	}
	var tips [][]uint64
	for i, rewards := range reply.Reward {
		if len(rewards) != len(shares) {
			return nil, fmt.Errorf("asking what the last %d blocks were paid: block %d has %d prices for %d shares",
				blocks, i, len(rewards), len(shares))
		}
		prices := make([]uint64, len(rewards))
		var most uint64
		for k, reward := range rewards {
			if reward == nil {
				return nil, fmt.Errorf("asking what the last %d blocks were paid: block %d has no price for share %d",
					blocks, i, shares[k])
			}
			prices[k] = uint64(math.MaxUint64)
			if reward.ToInt().IsUint64() {
				prices[k] = reward.ToInt().Uint64()
			}
			most = max(most, prices[k])
		}
		if most > 0 {
			tips = append(tips, prices)
		}
	}
	return tips, nil
}
