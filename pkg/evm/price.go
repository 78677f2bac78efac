package evm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/evm/agreement"
)

// GasPrice returns the price in wei per gas that nodes suggest: of up to three hosts the one in the middle, of two the
// lower. While fewer than two answer, where there are two, it is at most twice what was agreed on before.
func (c *Client) GasPrice(ctx context.Context) (uint64, error) {
	need := c.pool.required()
	answers, err := quorumReadPrices(ctx, c,
		func(ctx context.Context, one Reader) (uint64, error) { return one.GasPrice(ctx) })
	middle, found := agreement.LowerMedian(answers, cmp.Compare[uint64])
	if !found {
		return 0, fmt.Errorf("asking for the gas price: %w", err)
	}
	if len(answers) >= need {
		c.pool.price.Store(middle.Value)
		return middle.Value, nil
	}
	return atMostTwice(c.pool.price.Load(), middle.Value), nil
}

// Tips returns what the gas of the newest blocks was paid, as [Reader.Tips] does: for each share the prices of the host
// in the middle of up to three, of two the lower. While fewer than two answer, where there are two, each is at most
// twice what was agreed on before: on tips, or, where a host keeps no history of them, on the price that nodes suggest.
func (c *Client) Tips(ctx context.Context, blocks int, shares []uint64) ([][]uint64, error) {
	need := c.pool.required()
	answers, err := quorumReadPrices(ctx, c,
		func(ctx context.Context, one Reader) ([][]uint64, error) { return one.Tips(ctx, blocks, shares) })
	if len(answers) == 0 {
		return nil, fmt.Errorf("asking what the last %d blocks were paid: %w", blocks, err)
	}
	tips := middleTips(answers, shares)
	if len(answers) >= need {
		c.pool.tip.Store(dearest(tips, shares))
		return tips, nil
	}
	agreed := cmp.Or(c.pool.tip.Load(), c.pool.price.Load())
	for _, block := range tips {
		for k, price := range block {
			block[k] = atMostTwice(agreed, price)
		}
	}
	return tips, nil
}

// quorumReadPrices is [QuorumRead] for what is paid. Once one host has answered the others have as long as one may take
// that is not called slow: a claim may be waiting, and what one says alone is bounded.
func quorumReadPrices[T any](ctx context.Context, c *Client, ask func(context.Context, Reader) (T, error)) (
	[]agreement.Answer[T], error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errOvertaken)
	var first sync.Once
	return QuorumRead(ctx, c, ForPrices, c.pool.required(), func(ctx context.Context, one Reader) (T, error) {
		answer, err := ask(ctx, one)
		if err == nil {
			first.Do(func() { time.AfterFunc(c.pool.cfg.SlowAfter, func() { cancel(errOvertaken) }) })
		}
		return answer, err
	})
}

// atMostTwice bounds a price that one host says alone by one that was agreed on; 0 = none was.
func atMostTwice(agreed, price uint64) uint64 {
	if agreed == 0 {
		return price
	}
	return min(price, 2*agreed)
}

// dearest is the highest of what the shares of the blocks paid at most.
func dearest(tips [][]uint64, shares []uint64) (most uint64) {
	for k, share := range shares {
		most = max(most, percentile(tips, k, share))
	}
	return most
}

// middleTips takes each share from the host whose price for it, over all its blocks, is in the middle.
func middleTips(answers []agreement.Answer[[][]uint64], shares []uint64) (tips [][]uint64) {
	columns, length := make([][]uint64, len(shares)), -1
	for k, share := range shares {
		middle, _ := agreement.LowerMedian(answers,
			func(a, b [][]uint64) int { return cmp.Compare(percentile(a, k, share), percentile(b, k, share)) })
		columns[k] = column(middle.Value, k)
		if n := len(columns[k]); length < 0 || n < length {
			length = n
		}
	}
	for i := range max(length, 0) {
		var block []uint64
		for _, c := range columns {
			block = append(block, c[len(c)-length+i]) // the newest blocks are last
		}
		tips = append(tips, block)
	}
	return tips
}

func column(tips [][]uint64, k int) (prices []uint64) {
	for _, block := range tips {
		prices = append(prices, block[k])
	}
	return prices
}

// percentile is what a share of the blocks paid at most, 0 where there are none.
func percentile(tips [][]uint64, k int, percent uint64) uint64 {
	prices := slices.Sorted(slices.Values(column(tips, k)))
	if len(prices) == 0 {
		return 0
	}
	return prices[uint64(len(prices)-1)*min(percent, 100)/100]
}
