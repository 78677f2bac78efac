package exchange

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/lab/devnet/contracts"
)

// markets creates the pools.
func (d *deployer) markets(ctx context.Context) error {
	bySymbol := map[string]common.Address{}
	for _, t := range d.out.Tokens {
		bySymbol[t.Symbol] = t.Address
	}
	for _, m := range d.cfg.Markets {
		market := Market{Name: m.Name, Index: bySymbol[m.Index], Long: bySymbol[m.Long], Short: bySymbol[m.Short]}
		d.out.Markets = append(d.out.Markets, market)
		d.invoke(contracts.MarketFactory, d.out.Contracts.MarketFactory, gasToCreateMarket, "createMarket",
			market.Index, market.Long, market.Short, contracts.BaseKey("BASE_MARKET_TYPE"))
	}
	receipts, err := d.flush(ctx)
	if err != nil {
		return fmt.Errorf("creating markets: %w", err)
	}
	for i, receipt := range receipts {
		topic, ok := eventTopic(d.out.Contracts.EventEmitter, receipt, "MarketCreated")
		if !ok {
			return fmt.Errorf("creating market %s: no MarketCreated in transaction %s", d.out.Markets[i].Name,
				receipt.TxHash)
		}
		d.out.Markets[i].Address = common.BytesToAddress(topic[:])
	}
	return nil
}

func (d *deployer) marketParameters(ctx context.Context) error {
	p := d.cfg.Parameters
	for i, m := range d.out.Markets {
		d.adlParameters(m, d.cfg.Markets[i])
		d.fundingParameters(m)
		d.set("MIN_COLLATERAL_FACTOR", p.MinCollateralFactor, m.Address)
		d.set("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", p.MinCollateralFactorForLiquidation, m.Address)
		d.set("LIQUIDATION_FEE_FACTOR", p.LiquidationFeeFactor, m.Address)
		d.set("POSITION_FEE_FACTOR", p.PositionFeeFactorImproved, m.Address, true)
		d.set("POSITION_FEE_FACTOR", p.PositionFeeFactorWorsened, m.Address, false)
		d.set("RESERVE_FACTOR", p.ReserveFactor, m.Address, true)
		d.set("RESERVE_FACTOR", p.ReserveFactor, m.Address, false)
		d.set("SWAP_IMPACT_EXPONENT_FACTOR", p.SwapImpactExponentFactor, m.Address)
		d.set("SWAP_IMPACT_FACTOR", p.SwapImpactFactorPositive, m.Address, true)
		d.set("SWAP_IMPACT_FACTOR", p.SwapImpactFactorNegative, m.Address, false)
		for _, name := range []string{"SWAP_FEE_FACTOR", "WITHDRAWAL_FEE_FACTOR"} {
			d.set(name, p.SwapFeeFactorImproved, m.Address, true)
			d.set(name, p.SwapFeeFactorWorsened, m.Address, false)
		}
		d.shareInventory(m)
		for _, address := range []common.Address{m.Long, m.Short} {
			token, _ := d.out.Token(address)
			d.set("MAX_POOL_AMOUNT", d.worth(token, d.cfg.MaxPoolUSD), m.Address, address)
		}
	}
	if _, err := d.flush(ctx); err != nil {
		return fmt.Errorf("setting market parameters: %w", err)
	}
	return nil
}

// shareInventory lets markets with the same two tokens share a virtual inventory. It is written without an event, as on
// the original's networks.
func (d *deployer) shareInventory(m Market) {
	shared := func(other Market) bool {
		return other.Address != m.Address && other.Long == m.Long && other.Short == m.Short
	}
	if slices.ContainsFunc(d.out.Markets, shared) {
		d.invoke(contracts.DataStore, d.out.Contracts.DataStore, gasToConfigure, "setBytes32",
			contracts.Key("VIRTUAL_MARKET_ID", m.Address), virtualMarketID(m))
	}
}

func virtualMarketID(m Market) common.Hash { return crypto.Keccak256Hash(m.Long[:], m.Short[:]) }

// adlParameters sets the limits of deleveraging, and of profits in the face of swaps; without them every profit would
// be too much.
func (d *deployer) adlParameters(m Market, spec MarketSpec) {
	most, least := orDefault(spec.MaxPnlFactorForAdl, d.cfg.Parameters.MaxPnlFactorForAdl),
		orDefault(spec.MinPnlFactorAfterAdl, d.cfg.Parameters.MinPnlFactorAfterAdl)
	for _, isLong := range []bool{true, false} {
		d.set("MAX_PNL_FACTOR", most, contracts.BaseKey("MAX_PNL_FACTOR_FOR_ADL"), m.Address, isLong)
		d.set("MAX_PNL_FACTOR", d.cfg.Parameters.MaxPnlFactorForDeposits,
			contracts.BaseKey("MAX_PNL_FACTOR_FOR_DEPOSITS"), m.Address, isLong)
		d.set("MAX_PNL_FACTOR", d.cfg.Parameters.MaxPnlFactorForWithdrawals,
			contracts.BaseKey("MAX_PNL_FACTOR_FOR_WITHDRAWALS"), m.Address, isLong)
		d.set("MIN_PNL_FACTOR_AFTER_ADL", least, m.Address, isLong)
	}
}
