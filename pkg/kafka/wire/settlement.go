package wire

import (
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/wire/wirepb"
)

func settlementOut(s *job.Settlement) *wirepb.Settlement {
	if s == nil {
		return nil
	}
	pnl, impact := s.PnlUsd.Word(), s.ImpactUsd.Word()
	p := &wirepb.Settlement{
		OrderKey: s.OrderKey[:], SizeDeltaUsd: uintOut(s.SizeDeltaUsd), SizeLeftUsd: uintOut(s.SizeLeftUsd),
		ExecutionPrice: uintOut(s.ExecutionPrice),
		PnlUsd:         pnl[:], PriceImpactUsd: impact[:],
		CollateralDeltaAmount: uintOut(s.CollateralDelta), CollateralLeftAmount: uintOut(s.CollateralLeft),
		PositionFee: uintOut(s.Fees.Position), BorrowingFee: uintOut(s.Fees.Borrowing),
		FundingFee:     uintOut(s.Fees.Funding),
		LiquidationFee: uintOut(s.Fees.Liquidation), TotalFees: uintOut(s.Fees.Total),
		Insolvent: s.Insolvent, BadDebtUsd: uintOut(s.BadDebtUsd), BadDebtStep: s.BadDebtStep,
	}
	for _, paid := range s.Returned {
		p.Returned = append(p.Returned, &wirepb.Payment{Token: paid.Token[:], Amount: uintOut(paid.Amount)})
	}
	return p
}

func decodeSettlement(f *fields, p *wirepb.Settlement) *job.Settlement {
	if p == nil {
		return nil
	}
	s := &job.Settlement{
		OrderKey: f.hash(p.GetOrderKey()), SizeDeltaUsd: f.uint(p.GetSizeDeltaUsd()),
		SizeLeftUsd:    f.uint(p.GetSizeLeftUsd()),
		ExecutionPrice: f.uint(p.GetExecutionPrice()), PnlUsd: f.int(p.GetPnlUsd()),
		ImpactUsd:       f.int(p.GetPriceImpactUsd()),
		CollateralDelta: f.uint(p.GetCollateralDeltaAmount()), CollateralLeft: f.uint(p.GetCollateralLeftAmount()),
		Fees: job.Fees{
			Position: f.uint(p.GetPositionFee()), Borrowing: f.uint(p.GetBorrowingFee()),
			Funding:     f.uint(p.GetFundingFee()),
			Liquidation: f.uint(p.GetLiquidationFee()), Total: f.uint(p.GetTotalFees()),
		},
		Insolvent: p.GetInsolvent(), BadDebtUsd: f.uint(p.GetBadDebtUsd()), BadDebtStep: p.GetBadDebtStep(),
	}
	for _, paid := range p.GetReturned() {
		s.Returned = append(s.Returned,
			job.Payment{Token: f.address(paid.GetToken()), Amount: f.uint(paid.GetAmount())})
	}
	return s
}
