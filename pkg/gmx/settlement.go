package gmx

import (
	"bytes"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Settlement reads from all logs of one transaction what it came to for the position that a job closed or decreased
// (LIQ-11). It is nil where the transaction did no such thing.
func (d *Decoder) Settlement(logs []chain.Log, j job.Job) (*job.Settlement, error) {
	var r reader
	for i := range logs {
		if !d.maySettle(&logs[i]) {
			continue
		}
		if err := d.log(&r, &logs[i], 0); err != nil {
			return nil, fmt.Errorf("reading a settlement: %w", err)
		}
	}
	if err := r.join(); err != nil {
		return nil, fmt.Errorf("reading a settlement: %w", err)
	}
	var s *job.Settlement
	for _, e := range r.events {
		if e, is := e.(perp.PositionSettled); is &&
			(e.Settlement.PositionKey == j.Key || e.Settlement.OrderKey == j.Key) {
			s = settlementOf(e.Settlement)
		}
	}
	if s == nil {
		return nil, nil //nolint:nilnil // most transactions settle nothing, which is no error
	}
	for _, e := range r.events {
		if e, is := e.(perp.ClosedInsolvent); is && e.Debt.OrderKey == s.OrderKey {
			s.Insolvent, s.BadDebtUsd, s.BadDebtStep = true, e.Debt.RemainingCostUsd, e.Debt.Step
		}
	}
	if j.Kind == job.Liquidation || j.Kind == job.Adl {
		s.Returned = paidFrom(j.Market, logs)
	}
	return s, nil
}

// settling are the events a settlement is made of.
var settling = []string{"PositionDecrease", "PositionFeesCollected", "InsolventClose"}

func (d *Decoder) maySettle(l *chain.Log) bool {
	if !d.takes(l) || len(l.Topics) < 2 {
		return false
	}
	kind, known := eventKinds[l.Topics[1]]
	return known && slices.Contains(settling, kind.name)
}

func settlementOf(s perp.Settlement) *job.Settlement {
	return &job.Settlement{
		OrderKey: s.OrderKey, SizeDeltaUsd: s.SizeDeltaUsd, SizeLeftUsd: s.SizeInUsd, ExecutionPrice: s.ExecutionPrice,
		PnlUsd:    s.BasePnlUsd,
		ImpactUsd: s.PriceImpactUsd, CollateralDelta: s.CollateralDeltaAmount, CollateralLeft: s.CollateralAmount,
		Fees: job.Fees{
			Position: s.PositionFeeAmount, Borrowing: s.BorrowingFeeAmount, Funding: s.FundingFeeAmount,
			Liquidation: s.LiquidationFeeAmount,
			Total:       s.TotalCostAmount,
		},
	}
}

// The logs of tokens (ERC-20), and of the wrapped native token, which a market unwraps to pay in coins (WETH9). They
// are not the exchange's own.
var (
	transferTopic   = chain.Keccak256([]byte("Transfer(address,address,uint256)"))
	withdrawalTopic = chain.Keccak256([]byte("Withdrawal(address,uint256)"))
	depositTopic    = chain.Keccak256([]byte("Deposit(address,uint256)"))
)

// paidFrom sums up what left a market in a transaction, by token. A market holds its pool itself (MarketToken is its
// bank), and when a position is liquidated or deleveraged it pays nobody but the position's receiver. Coins that cannot
// be paid are wrapped again and paid as tokens. No token may choose what is said: logs of another shape than the
// standard's are passed over.
func paidFrom(market chain.Address, logs []chain.Log) (paid []job.Payment) {
	sums := map[chain.Address]chain.Int{}
	for i := range logs {
		l := &logs[i]
		if len(l.Topics) < 2 || l.Topics[1] != market.Hash() || len(l.Data) != 32 {
			continue
		}
		amount := chain.UintFromBytes(l.Data)
		if most := chain.UintFromBytes(bytes.Repeat([]byte{0xff}, 16)); most.Less(amount) {
			continue // no token has so many, and sums must not overflow
		}
		switch topic := l.Topics[0]; {
		case topic == transferTopic && len(l.Topics) == 3, topic == withdrawalTopic && len(l.Topics) == 2:
			sums[l.Address] = sums[l.Address].Add(amount.Int())
		case topic == depositTopic && len(l.Topics) == 2:
			sums[l.Address] = sums[l.Address].Sub(amount.Int())
		}
	}
	for token, sum := range sums {
		if sum.Sign() > 0 {
			paid = append(paid, job.Payment{Token: token, Amount: sum.Uint()})
		}
	}
	slices.SortFunc(paid, func(a, b job.Payment) int { return bytes.Compare(a.Token[:], b.Token[:]) })
	return paid
}
