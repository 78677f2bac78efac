package exchange

import (
	"context"
	"crypto/ecdsa"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/contracts"
)

// ShiftRequest moves liquidity between two markets of the same pool tokens; amounts of market tokens with 18 decimals.
type ShiftRequest struct {
	From, To        Market
	MarketTokens    *big.Int
	MinMarketTokens *big.Int
	ExecutionFee    *big.Int
}

// GlvDepositRequest puts tokens into a GLV by way of one of its markets, or market tokens of that market where
// MarketTokens is positive. Amounts in smallest units, MinGlvTokens with 18 decimals.
type GlvDepositRequest struct {
	Glv                     Glv
	Market                  Market
	LongAmount, ShortAmount *big.Int
	MarketTokens            *big.Int
	MinGlvTokens            *big.Int
	ExecutionFee            *big.Int
}

// GlvWithdrawalRequest turns GLV tokens (18 decimals) into the pool tokens of one of the GLV's markets.
type GlvWithdrawalRequest struct {
	Glv               Glv
	Market            Market
	GlvTokens         *big.Int
	MinLong, MinShort *big.Int
	ExecutionFee      *big.Int
}

// GlvShiftRequest moves liquidity of a GLV between two of its markets; amounts of market tokens with 18 decimals.
type GlvShiftRequest struct {
	Glv             Glv
	From, To        Market
	MarketTokens    *big.Int
	MinMarketTokens *big.Int
}

// The layouts of the contracts' Create* structs; field names and order matter.
//
//nolint:staticcheck // UiFeeReceiver is what the encoder makes of the contracts' name
type (
	shiftParams struct {
		Addresses        shiftAddresses
		MinMarketTokens  *big.Int
		ExecutionFee     *big.Int
		CallbackGasLimit *big.Int
		DataList         [][32]byte
	}
	shiftAddresses struct {
		Receiver, CallbackContract, UiFeeReceiver, FromMarket, ToMarket common.Address
	}
	glvDepositParams struct {
		Addresses               glvDepositAddresses
		MinGlvTokens            *big.Int
		ExecutionFee            *big.Int
		CallbackGasLimit        *big.Int
		ShouldUnwrapNativeToken bool
		IsMarketTokenDeposit    bool
		DataList                [][32]byte
	}
	glvDepositAddresses struct {
		Receiver, CallbackContract, UiFeeReceiver, Glv, Market, InitialLongToken, InitialShortToken common.Address
		LongTokenSwapPath, ShortTokenSwapPath                                                       []common.Address
	}
	glvWithdrawalParams struct {
		Addresses               glvWithdrawalAddresses
		MinLongTokenAmount      *big.Int
		MinShortTokenAmount     *big.Int
		ShouldUnwrapNativeToken bool
		ExecutionFee            *big.Int
		CallbackGasLimit        *big.Int
		DataList                [][32]byte
	}
	glvWithdrawalAddresses struct {
		Receiver, CallbackContract, UiFeeReceiver, Market, Glv common.Address
		LongTokenSwapPath, ShortTokenSwapPath                  []common.Address
	}
	glvShiftParams struct {
		Glv, FromMarket, ToMarket          common.Address
		MarketTokenAmount, MinMarketTokens *big.Int
	}
)

// CreateShift sends a shift; the account must have approved the router for the market token it leaves.
func (c *Client) CreateShift(ctx context.Context, key *ecdsa.PrivateKey, r ShiftRequest) (common.Hash, error) {
	return c.submit(ctx, key, "creating a shift", c.Deployment().shiftCall(addressOf(key), r))
}

// CreateGlvDeposit sends a GLV deposit; the account must have approved the router for what it brings.
func (c *Client) CreateGlvDeposit(ctx context.Context, key *ecdsa.PrivateKey, r GlvDepositRequest) (common.Hash,
	error) {
	return c.submit(ctx, key, "creating a GLV deposit", c.Deployment().glvDepositCall(addressOf(key), r))
}

// CreateGlvWithdrawal sends a GLV withdrawal; the account must have approved the router for the GLV token.
func (c *Client) CreateGlvWithdrawal(ctx context.Context, key *ecdsa.PrivateKey, r GlvWithdrawalRequest) (common.Hash,
	error) {
	return c.submit(ctx, key, "creating a GLV withdrawal", c.Deployment().glvWithdrawalCall(addressOf(key), r))
}

// CreateGlvShift sends a GLV shift; the account needs ORDER_KEEPER. Nothing is paid for it, and it cannot be taken
// back.
func (c *Client) CreateGlvShift(ctx context.Context, key *ecdsa.PrivateKey, r GlvShiftRequest) (common.Hash, error) {
	return c.submit(ctx, key, "creating a GLV shift", c.Deployment().glvShiftCall(r))
}

func (d *Deployment) shiftCall(account common.Address, r ShiftRequest) call {
	fee := orDefault(r.ExecutionFee, defaultExecutionFee)
	b := d.batch(d.Contracts.ShiftVault, fee)
	b.tokens(r.From.Address, r.MarketTokens)
	b.add("createShift", shiftParams{
		Addresses:       shiftAddresses{Receiver: account, FromMarket: r.From.Address, ToMarket: r.To.Address},
		MinMarketTokens: orZero(r.MinMarketTokens), ExecutionFee: fee, CallbackGasLimit: new(big.Int),
	})
	return b.call()
}

func (d *Deployment) glvDepositCall(account common.Address, r GlvDepositRequest) call {
	fee := orDefault(r.ExecutionFee, defaultExecutionFee)
	b := d.batch(d.Contracts.GlvVault, fee)
	p := glvDepositParams{
		Addresses:    glvDepositAddresses{Receiver: account, Glv: r.Glv.Address, Market: r.Market.Address},
		MinGlvTokens: orZero(r.MinGlvTokens), ExecutionFee: fee, CallbackGasLimit: new(big.Int),
		IsMarketTokenDeposit: orZero(r.MarketTokens).Sign() > 0,
	}
	if p.IsMarketTokenDeposit {
		b.tokens(r.Market.Address, r.MarketTokens)
	} else {
		p.Addresses.InitialLongToken, p.Addresses.InitialShortToken = r.Market.Long, r.Market.Short
		b.tokens(r.Market.Long, r.LongAmount)
		b.tokens(r.Market.Short, r.ShortAmount)
	}
	b.add("createGlvDeposit", p)
	return b.call()
}

func (d *Deployment) glvWithdrawalCall(account common.Address, r GlvWithdrawalRequest) call {
	fee := orDefault(r.ExecutionFee, defaultExecutionFee)
	b := d.batch(d.Contracts.GlvVault, fee)
	b.tokens(r.Glv.Address, r.GlvTokens)
	b.add("createGlvWithdrawal", glvWithdrawalParams{
		Addresses:          glvWithdrawalAddresses{Receiver: account, Glv: r.Glv.Address, Market: r.Market.Address},
		MinLongTokenAmount: orZero(r.MinLong), MinShortTokenAmount: orZero(r.MinShort), ExecutionFee: fee,
		CallbackGasLimit: new(big.Int),
	})
	return b.call()
}

func (d *Deployment) glvShiftCall(r GlvShiftRequest) call {
	p := glvShiftParams{
		Glv: r.Glv.Address, FromMarket: r.From.Address, ToMarket: r.To.Address,
		MarketTokenAmount: orZero(r.MarketTokens),
		MinMarketTokens:   orZero(r.MinMarketTokens),
	}
	return call{to: &d.Contracts.GlvShiftHandler, data: pack(contracts.GlvShiftHandler, "createGlvShift", p),
		gas: gasToRequest}
}
