package gmx

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// ExecutedSwap is a swap in one market that the exchange executed, from its events: SwapInfo and the SwapFeesCollected
// after it. It is no state: what it changed is in events of the measures before it.
type ExecutedSwap struct {
	Hop           perp.SwapHop // without After
	TokenInPrice  perp.Uint    // the lower one
	TokenOutPrice perp.Uint    // the higher one
	UIFeeReceiver chain.Address
	Atomic        bool
	// From and At are the log indices of the first measure that the swap changed, and of its SwapInfo.
	From, At uint32
}

var (
	swapInfoName      = chain.Keccak256([]byte("SwapInfo"))
	swapFeesName      = chain.Keccak256([]byte("SwapFeesCollected"))
	impactPoolName    = chain.Keccak256([]byte("SwapImpactPoolAmountUpdated"))
	poolName          = chain.Keccak256([]byte("PoolAmountUpdated"))
	virtualSwapName   = chain.Keccak256([]byte("VirtualSwapInventoryUpdated"))
	atomicSwapFeeType = perp.BaseKey("ATOMIC_SWAP_FEE_TYPE")
)

// ExecutedSwaps lists the swaps of one transaction, of which all logs must be there, in their order. Before v2.2 the
// contracts did not say what the impact pool of the token in paid: such a log is an error.
func ExecutedSwaps(logs []chain.Log) (swaps []ExecutedSwap, err error) {
	var r reader
	for i := range logs {
		if nameOf(&logs[i]) != swapInfoName {
			continue
		}
		s := ExecutedSwap{From: logs[firstOfSwap(logs, i)].Index, At: logs[i].Index}
		if i+1 == len(logs) || nameOf(&logs[i+1]) != swapFeesName {
			return nil, fmt.Errorf("log at %s: SwapInfo without SwapFeesCollected after it", placeOf(&logs[i]))
		}
		if err := r.swapInfo(&logs[i], &s); err != nil {
			return nil, err
		}
		if err := r.swapFees(&logs[i+1], &s); err != nil {
			return nil, err
		}
		swaps = append(swaps, s)
	}
	return swaps, nil
}

func nameOf(l *chain.Log) chain.Hash {
	if _, ok := emitterTopics(l); !ok {
		return chain.Hash{}
	}
	return l.Topics[1]
}

// firstOfSwap walks back from a SwapInfo over what its swap changed: one or two impact pools, then two pools, each
// after its virtual inventory if it has one.
func firstOfSwap(logs []chain.Log, at int) int {
	for range 2 {
		if at > 0 && nameOf(&logs[at-1]) == poolName {
			at--
		}
		if at > 0 && nameOf(&logs[at-1]) == virtualSwapName {
			at--
		}
	}
	for range 2 {
		if at > 0 && nameOf(&logs[at-1]) == impactPoolName {
			at--
		}
	}
	return at
}

func (r *reader) swapInfo(l *chain.Log, s *ExecutedSwap) error {
	if err := r.load(l, eventKinds[swapInfoName]); err != nil {
		return r.fault(err)
	}
	s.Hop = perp.SwapHop{
		Market: r.address("market"), TokenIn: r.address("tokenIn"), TokenOut: r.address("tokenOut"),
		AmountIn: r.uint("amountIn"), AmountInAfterFees: r.uint("amountInAfterFees"), AmountOut: r.uint("amountOut"),
		PriceImpactUsd: r.int("priceImpactUsd"), PriceImpactAmount: r.int("priceImpactAmount"),
	}
	s.TokenInPrice, s.TokenOutPrice = r.uint("tokenInPrice"), r.uint("tokenOutPrice")
	if paid := r.int("tokenInPriceImpactAmount"); paid.Sign() >= 0 {
		s.Hop.TokenInPriceImpactAmount = paid.Uint()
	} else {
		r.failf("item %q: %s is below zero", "tokenInPriceImpactAmount", paid)
	}
	return r.broken()
}

func (r *reader) swapFees(l *chain.Log, s *ExecutedSwap) error {
	if err := r.load(l, eventKinds[swapFeesName]); err != nil {
		return r.fault(err)
	}
	s.UIFeeReceiver, s.Atomic = r.address("uiFeeReceiver"), r.hash("swapFeeType") == atomicSwapFeeType
	s.Hop.FeeReceiverAmount, s.Hop.FeeAmountForPool, s.Hop.UIFeeAmount = r.uint("feeReceiverAmount"),
		r.uint("feeAmountForPool"), r.uint("uiFeeAmount")
	return r.broken()
}

// broken is what is wrong with the log that has been read.
func (r *reader) broken() error {
	if r.err != nil {
		return r.fault(r.err)
	}
	return nil
}

var oraclePriceUpdate = chain.Keccak256([]byte("OraclePriceUpdate"))

// oracleReport reads the log that names the report by which the exchange's oracle took a price (OraclePriceUpdate). The
// answer is false for any other log.
func (r *reader) oracleReport(l *chain.Log) (is bool) {
	topics, ok := emitterTopics(l)
	return ok && topics == 1 && l.Topics[1] == oraclePriceUpdate && r.load(l, eventKinds[oraclePriceUpdate]) == nil
}

// OraclePrice reads the price that the exchange's oracle took for a token in a transaction (OraclePriceUpdate). It is
// no state of the exchange: the next execution brings its own. The answer is false for any other log.
func OraclePrice(l chain.Log) (token chain.Address, price perp.Price, is bool) {
	var r reader
	if !r.oracleReport(&l) {
		return token, price, false
	}
	token, price = r.address("token"), perp.Price{Min: r.uint("minPrice"), Max: r.uint("maxPrice")}
	return token, price, r.err == nil
}

// OracleSecond reads how old the report was by which the exchange's oracle took a price in a transaction
// (OraclePriceUpdate): the time its signers gave it, in Unix seconds. The answer is false for any other log.
func OracleSecond(l chain.Log) (second uint64, is bool) {
	var r reader
	if !r.oracleReport(&l) {
		return 0, false
	}
	second, fits := r.uint("timestamp").Uint64()
	return second, fits && r.err == nil
}
