package exchange

import (
	"context"
	"fmt"
	"math/big"

	"perpkeeper/lab/devnet/contracts"
)

// liquidityOf is what goes into each token of a market's pool, in dollars.
func (d *deployer) liquidityOf(i int) int64 {
	if own := d.cfg.Markets[i].LiquidityUSD; own > 0 {
		return own
	}
	return d.cfg.LiquidityUSD
}

// liquidity deposits into every pool as a user would, and executes the deposits as a keeper would.
func (d *deployer) liquidity(ctx context.Context) error {
	for _, t := range d.out.Tokens {
		d.invoke(contracts.MintableToken, t.Address, gasToConfigure, "mint", d.self,
			d.worth(t, d.cfg.LiquidityUSD*int64(len(d.out.Markets))))
		d.invoke(contracts.MintableToken, t.Address, gasToConfigure, "approve", d.out.Contracts.Router,
			maxUint256)
	}
	if _, err := d.flush(ctx); err != nil {
		return fmt.Errorf("minting the first liquidity: %w", err)
	}
	for i, m := range d.out.Markets {
		long, _ := d.out.Token(m.Long)
		short, _ := d.out.Token(m.Short)
		d.pending = append(d.pending, d.out.depositCall(d.self, DepositRequest{
			Market: m, LongAmount: d.worth(long, d.liquidityOf(i)), ShortAmount: d.worth(short, d.liquidityOf(i)),
			ExecutionFee: defaultExecutionFee,
		}))
	}
	receipts, err := d.flush(ctx)
	if err != nil {
		return fmt.Errorf("creating the first deposits: %w", err)
	}
	for i, receipt := range receipts {
		key, ok := eventTopic(d.out.Contracts.EventEmitter, receipt, "DepositCreated")
		if !ok {
			return fmt.Errorf("first deposit into %s: no DepositCreated in transaction %s", d.out.Markets[i].Name,
				receipt.TxHash)
		}
		prices, err := d.firstPrices(ctx, d.out.Markets[i], receipt.BlockNumber)
		if err != nil {
			return err
		}
		d.invoke(contracts.DepositHandler, d.out.Contracts.DepositHandler, gasToProvide, "executeDeposit", key, prices)
	}
	return d.executeDeposits(ctx)
}

func (d *deployer) executeDeposits(ctx context.Context) error {
	receipts, err := d.flush(ctx)
	if err != nil {
		return fmt.Errorf("executing the first deposits: %w", err)
	}
	for i, receipt := range receipts {
		if _, ok := eventTopic(d.out.Contracts.EventEmitter, receipt, "DepositExecuted"); !ok {
			return fmt.Errorf("the first deposit into %s was cancelled in transaction %s", d.out.Markets[i].Name,
				receipt.TxHash)
		}
	}
	return nil
}

// firstPrices are reports as of the block in which the deposit was made.
func (d *deployer) firstPrices(ctx context.Context, m Market, block *big.Int) (OracleParams, error) {
	header, err := d.backend.HeaderByNumber(ctx, block)
	if err != nil {
		return OracleParams{}, fmt.Errorf("reading block %s: %w", block, err)
	}
	var params OracleParams
	for _, address := range m.PriceTokens() {
		token, _ := d.out.Token(address)
		report := SignReport(d.cfg.ReportKey, d.chainID, address, d.cfg.firstPrice(token.Symbol), header.Time)
		params.Add(address, d.out.Contracts.OracleProvider, report)
	}
	return params, nil
}

// worth is so many dollars in units of a token, at its first price.
func (d *deployer) worth(t Token, dollars int64) *big.Int {
	usd := new(big.Int).Mul(factor(1, 1), big.NewInt(dollars))
	return usd.Quo(usd, d.cfg.firstPrice(t.Symbol).Max)
}
