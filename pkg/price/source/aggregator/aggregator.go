// Package aggregator reads Chainlink's aggregator contracts.
package aggregator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
)

// Plugin is this kind of service: contracts that are asked through the chain's endpoints.
var Plugin = source.Plugin{
	Kind: "aggregator", Needs: []string{"provider"}, Feed: checkFeed, Open: open,
	Adjusts: source.Adjustment{Word: "STABLE_PRICE", Take: upToStable},
}

// upToStable is what the exchange's provider makes of the price of a token that it takes to be stable
// (ChainlinkPriceFeedProvider): all from there to what the feed says.
func upToStable(p perp.Price, stable chain.Uint) perp.Price {
	return perp.Price{Min: p.Min.Min(stable), Max: p.Max.Max(stable)}
}

func checkFeed(feed string) error {
	if a, err := chain.ParseAddress(feed); err != nil || a.IsZero() {
		return errors.New("is not a contract's address")
	}
	return nil
}

// latestRoundData is the call's data: its selector alone.
var latestRoundData = func() []byte { h := chain.Keccak256([]byte("latestRoundData()")); return h[:4] }()

// aggregator reads Chainlink's aggregator contracts, all of them at the same block. Min and max are the answer, and
// there is no data: an oracle that takes such prices reads the contract itself, and gives them the time of the block it
// is called in, so long as the round is no older than the feed's heartbeat. So a report's time is the block's, and its
// age, which max_age bounds, is the round's: a stable coin's is written once a day, and serves all day.
type aggregator struct {
	node     source.Caller
	interval time.Duration
	timeout  time.Duration
	provider chain.Address
	tokens   []source.Token
}

const feedDecimals = 8

func open(t source.Table, env source.Env) price.Source {
	a := &aggregator{node: env.Node, interval: t.Interval, timeout: env.Timeout, provider: t.Provider}
	for _, token := range t.Tokens {
		token.FeedDecimals = cmp.Or(token.FeedDecimals, feedDecimals)
		a.tokens = append(a.tokens, token)
	}
	return a
}

// Run implements price.Source. A contract that does not answer is its own token's trouble; where none does, it is the
// chain's.
func (a *aggregator) Run(ctx context.Context, take price.Take) error {
	return source.Poll(ctx, a.interval, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		head, err := a.node.Head(ctx)
		if err != nil {
			return err
		}
		var reports []price.Report
		var unreadable []error
		answers := 0
		for _, token := range a.tokens {
			contract, _ := chain.ParseAddress(token.Feed) // the configuration was checked
			var r price.Report
			output, err := a.node.Call(ctx, contract, latestRoundData, head.Hash)
			if err == nil {
				answers++
				r, err = decodeRound(output, token)
			}
			if err != nil {
				unreadable = append(unreadable, fmt.Errorf("price of %s from aggregator %s: %w", token.Address,
					contract, err))
				continue
			}
			r.Provider, r.TimeMs = a.provider, head.TimeMs
			reports = append(reports, r)
		}
		if answers == 0 && len(unreadable) > 0 {
			return unreadable[0]
		}
		take(reports, unreadable)
		return nil
	})
}

// decodeRound reads (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound),
// times in Unix seconds. The report has no time yet but that of the round.
func decodeRound(output []byte, token source.Token) (r price.Report, err error) {
	const words, answerAt, updatedAt = 5, 1, 3
	if len(output) != words*source.Word {
		return r, fmt.Errorf("%d bytes are no round", len(output))
	}
	answer := output[answerAt*source.Word : (answerAt+1)*source.Word]
	if answer[0] >= 0x80 {
		return r, fmt.Errorf("the answer is negative")
	}
	second, fits := chain.UintFromBytes(output[updatedAt*source.Word : (updatedAt+1)*source.Word]).Uint64()
	if !fits || second == 0 || second > math.MaxInt64/1000 {
		return r, fmt.Errorf("the round is not complete")
	}
	low, high, err := price.PerUnit(chain.UintFromBytes(answer), chain.UintFromBytes(answer), -int(token.FeedDecimals),
		token.Decimals)
	if err != nil {
		return r, err
	}
	return price.Report{Token: token.Address, Min: low, Max: high, RoundMs: second * 1000}, nil
}
