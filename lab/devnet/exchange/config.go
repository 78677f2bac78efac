package exchange

import (
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/contracts"
)

// The roles a keeper can hold.
const (
	OrderKeeper       = "ORDER_KEEPER"
	LiquidationKeeper = "LIQUIDATION_KEEPER"
	AdlKeeper         = "ADL_KEEPER"
	FrozenOrderKeeper = "FROZEN_ORDER_KEEPER"
)

// KeeperRoles are all of them.
var KeeperRoles = []string{OrderKeeper, LiquidationKeeper, AdlKeeper, FrozenOrderKeeper}

// Config says what to deploy.
type Config struct {
	// Deployer pays for the deployment and administers the exchange. It must not have sent a transaction yet: the
	// addresses follow from its address and nonces.
	Deployer *ecdsa.PrivateKey
	// ReportKey signs the prices of the first liquidity; its address becomes the signer the oracle provider accepts.
	ReportKey *ecdsa.PrivateKey
	Keepers   []Keeper
	// Version of the contracts.
	Version contracts.Version
	// GlvManager may ask for shifts of the GLVs, for which the exchange demands ORDER_KEEPER; zero = nobody but the
	// keepers.
	GlvManager common.Address
	Tokens     []TokenSpec
	Markets    []MarketSpec
	Glvs       []GlvSpec
	Parameters Parameters
	// LiquidityUSD is put into each token of each pool, in whole dollars at the token's first price; deposits are
	// refused when they would bring more than MaxPoolUSD into it.
	LiquidityUSD, MaxPoolUSD int64
}

// TokenSpec describes a token to create.
type TokenSpec struct {
	Symbol   string
	Decimals uint8
	// FirstPriceMicroUSD is the price of a whole token, in millionths of a dollar, at which the first liquidity is
	// valued.
	FirstPriceMicroUSD int64
}

// MarketSpec describes a market by the symbols of its tokens. One without an index only swaps.
type MarketSpec struct {
	Name               string
	Index, Long, Short string
	// LiquidityUSD is this pool's, in place of the configuration's; 0 = that.
	LiquidityUSD int64
	// MaxPnlFactorForAdl and MinPnlFactorAfterAdl are this market's, in place of the parameters'; nil = those.
	MaxPnlFactorForAdl, MinPnlFactorAfterAdl *big.Int
}

// GlvSpec describes a GLV by the symbols of its markets' tokens and the names of its markets.
type GlvSpec struct {
	Name        string
	Long, Short string
	Markets     []string
}

// Parameters of the exchange. USD values have 30 decimals; a factor of 10^30 is 100 %.
type Parameters struct {
	// A position below this remaining collateral, or below the factor of its size, may not be opened or is liquidated.
	MinCollateralUSD                  *big.Int
	MinCollateralFactor               *big.Int
	MinCollateralFactorForLiquidation *big.Int
	// LiquidationRatioFactor scales the required collateral: 10^30 is GMX's rule, 1.1·10^30 liquidates below 110 %.
	LiquidationRatioFactor *big.Int
	MinPositionSizeUSD     *big.Int
	// ReserveFactor is the part of the pool that may be owed to one side's open positions.
	ReserveFactor *big.Int
	// The fee on size: for changes that balance the two sides' open interest, and for the others.
	PositionFeeFactorImproved *big.Int
	PositionFeeFactorWorsened *big.Int
	LiquidationFeeFactor      *big.Int
	// MaxPnlFactorForAdl is the part of the pool that one side may have gained before it is deleveraged;
	// MinPnlFactorAfterAdl is how far a deleveraging may bring that down.
	MaxPnlFactorForAdl   *big.Int
	MinPnlFactorAfterAdl *big.Int

	// The bounds of the funding factor per second, and the least by which it grows in a second.
	MinFundingFactorPerSecond       *big.Int
	MaxFundingFactorPerSecond       *big.Int
	MinFundingIncreaseRatePerSecond *big.Int

	// RequestExpiration is how long keepers may execute a market order or a deposit; then its user may cancel it.
	RequestExpiration       time.Duration
	GlvShiftMinInterval     time.Duration
	MaxOraclePriceAge       time.Duration
	MaxOracleTimestampRange time.Duration
	MaxAutoCancelOrders     int64
	MaxDataLength           int64

	// The fee on swaps that balance a pool, and on the others, and the part of it that is not the pool's.
	SwapFeeFactorImproved *big.Int
	SwapFeeFactorWorsened *big.Int
	SwapFeeReceiverFactor *big.Int
	MaxUIFeeFactor        *big.Int
	// Swaps that bring in, or take out, the token in which a side's profits are paid are refused while these profits
	// are above this part of it.
	MaxPnlFactorForDeposits    *big.Int
	MaxPnlFactorForWithdrawals *big.Int
	// The impact of a swap is the difference of a pool's two tokens in USD, raised to the exponent and times the
	// factor, before less after.
	SwapImpactFactorPositive *big.Int
	SwapImpactFactorNegative *big.Int
	SwapImpactExponentFactor *big.Int
	MaxSwapPathLength        int64

	// Callbacks: of one request, of all auto-cancel orders of a position, and of a refund to a callback contract.
	MaxCallbackGasLimit        int64
	MaxTotalCallbackGasLimit   int64
	RefundExecutionFeeGasLimit int64

	// Gas that an execution must have left at its start, and that is kept back to handle its failure.
	SwapOrderGasLimit            int64
	SingleSwapGasLimit           int64
	IncreaseOrderGasLimit        int64
	DecreaseOrderGasLimit        int64
	DepositGasLimit              int64
	WithdrawalGasLimit           int64
	ShiftGasLimit                int64
	GlvDepositGasLimit           int64
	GlvWithdrawalGasLimit        int64
	GlvShiftGasLimit             int64
	GlvPerMarketGasLimit         int64
	MinAdditionalGasForExecution int64
	// MinHandleExecutionErrorGas is how much must be left for an execution that failed without a reason to count as
	// failed rather than out of gas; it must exceed what is kept back.
	MinHandleExecutionErrorGasToForward int64
	MinHandleExecutionErrorGas          int64
	// GasFeeBaseAmount is the part of an execution's gas that its own count does not see.
	GasFeeBaseAmount int64
	// GasFeePerOraclePrice is the allowance for each price report.
	GasFeePerOraclePrice int64
	// LiquidationBurn is gas that a liquidation burns beside its own work.
	LiquidationBurn int64
}

// defaultParameters are close to GMX's on its main network; the gas limits are this exchange's own, and others than the
// original's on purpose: a keeper has to read them.
func defaultParameters() Parameters {
	return Parameters{
		MinCollateralUSD:                    factor(1, 1),
		MinCollateralFactor:                 factor(1, 100),
		MinCollateralFactorForLiquidation:   factor(1, 100),
		LiquidationRatioFactor:              factor(1, 1),
		MinPositionSizeUSD:                  factor(1, 1),
		ReserveFactor:                       factor(9, 10),
		PositionFeeFactorImproved:           factor(5, 10_000),
		PositionFeeFactorWorsened:           factor(7, 10_000),
		LiquidationFeeFactor:                factor(20, 10_000),
		MaxPnlFactorForAdl:                  factor(50, 100),
		MinPnlFactorAfterAdl:                factor(40, 100),
		MinFundingFactorPerSecond:           factor(3, 10_000_000_000),
		MaxFundingFactorPerSecond:           factor(2, 100_000_000),
		MinFundingIncreaseRatePerSecond:     factor(1, 10_000_000_000_000),
		RequestExpiration:                   300 * time.Second,
		GlvShiftMinInterval:                 5 * time.Second,
		MaxOraclePriceAge:                   300 * time.Second,
		MaxOracleTimestampRange:             60 * time.Second,
		MaxAutoCancelOrders:                 6,
		MaxDataLength:                       8,
		SwapFeeFactorImproved:               factor(5, 10_000),
		SwapFeeFactorWorsened:               factor(7, 10_000),
		SwapFeeReceiverFactor:               factor(37, 100),
		MaxUIFeeFactor:                      factor(2, 1_000),
		MaxPnlFactorForDeposits:             factor(9, 10),
		MaxPnlFactorForWithdrawals:          factor(7, 10),
		SwapImpactFactorPositive:            factor(2, 10_000_000_000),
		SwapImpactFactorNegative:            factor(4, 10_000_000_000),
		SwapImpactExponentFactor:            factor(2, 1),
		MaxSwapPathLength:                   3,
		MaxCallbackGasLimit:                 2_000_000,
		MaxTotalCallbackGasLimit:            5_000_000,
		RefundExecutionFeeGasLimit:          150_000,
		IncreaseOrderGasLimit:               2_300_000,
		DecreaseOrderGasLimit:               2_600_000,
		SwapOrderGasLimit:                   1_900_000,
		SingleSwapGasLimit:                  800_000,
		DepositGasLimit:                     1_700_000,
		WithdrawalGasLimit:                  1_600_000,
		ShiftGasLimit:                       600_000,
		GlvDepositGasLimit:                  650_000,
		GlvWithdrawalGasLimit:               600_000,
		GlvShiftGasLimit:                    750_000,
		GlvPerMarketGasLimit:                110_000,
		MinAdditionalGasForExecution:        900_000,
		MinHandleExecutionErrorGasToForward: 800_000,
		MinHandleExecutionErrorGas:          1_100_000,
		GasFeeBaseAmount:                    300_000,
		GasFeePerOraclePrice:                150_000,
	}
}

// DefaultConfig is the demo's exchange: ETH/USD and BTC/USD, each with its long token and USDC in the pool; BTC/USD and
// SOL/USD with WETH and USDC in the pool; a market of WETH and USDC that only swaps; and a GLV over the three markets
// of WETH and USDC that have positions. SOL/USD is small, and soon deleveraged.
func DefaultConfig(deployer, reportKey *ecdsa.PrivateKey, keepers []Keeper) Config {
	return Config{
		Deployer:  deployer,
		ReportKey: reportKey,
		Keepers:   keepers,
		Version:   contracts.V22C,
		Tokens: []TokenSpec{
			{Symbol: "WETH", Decimals: 18, FirstPriceMicroUSD: 3_000_000_000},
			{Symbol: "WBTC", Decimals: 8, FirstPriceMicroUSD: 60_000_000_000},
			{Symbol: "USDC", Decimals: 6, FirstPriceMicroUSD: 1_000_000},
			{Symbol: "SOL", Decimals: 9, FirstPriceMicroUSD: 150_000_000},
		},
		Markets: []MarketSpec{
			{Name: "ETH/USD", Index: "WETH", Long: "WETH", Short: "USDC"},
			{Name: "BTC/USD", Index: "WBTC", Long: "WBTC", Short: "USDC"},
			{Name: "WETH-USDC", Long: "WETH", Short: "USDC"},
			{Name: "BTC/USD [WETH-USDC]", Index: "WBTC", Long: "WETH", Short: "USDC"},
			{
				Name: "SOL/USD", Index: "SOL", Long: "WETH", Short: "USDC", LiquidityUSD: 2_000_000,
				MaxPnlFactorForAdl: factor(5, 1_000), MinPnlFactorAfterAdl: factor(2, 1_000),
			},
		},
		Glvs: []GlvSpec{
			{Name: "GLV [WETH-USDC]", Long: "WETH", Short: "USDC",
				Markets: []string{"ETH/USD", "BTC/USD [WETH-USDC]", "SOL/USD"}},
		},
		Parameters:   defaultParameters(),
		LiquidityUSD: 50_000_000,
		MaxPoolUSD:   1_000_000_000,
	}
}

func (c *Config) firstPrice(symbol string) Price {
	for _, t := range c.Tokens {
		if t.Symbol == symbol {
			p := USD30(t.FirstPriceMicroUSD, t.Decimals)
			return Price{Min: p, Max: p}
		}
	}
	panic(fmt.Sprintf("no token %q", symbol))
}

// factor is the fraction numerator/denominator with 30 decimals, and also that many dollars.
func factor(numerator, denominator int64) *big.Int {
	f := new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)
	f.Mul(f, big.NewInt(numerator))
	return f.Quo(f, big.NewInt(denominator))
}
