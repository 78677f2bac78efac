// Package devnettest is a running devnet for tests that play traders and keepers by hand: blocks and price reports come
// by themselves, nobody trades unless told to, and any of the devnet's keepers can be made to send any call at any
// time, sensible or not.
package devnettest

import (
	"context"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/exchange"
)

// hangGuard ends a wait that has no end.
const hangGuard = 90 * time.Second

// Site is a devnet and who acts on it. It is for one goroutine, that of the test.
type Site struct {
	*devnet.Devnet
	tb      testing.TB
	chain   *ethclient.Client
	users   *exchange.Client
	trader  devnet.Account
	keepers []devnet.Account
	nonces  map[common.Address]uint64
}

// Start runs a devnet with a block every tenth of a second until the test ends, and one trader who has tokens.
func Start(tb testing.TB) *Site {
	tb.Helper()
	cfg := devnet.DefaultConfig()
	cfg.Rate, cfg.BlockTime = 0, 100*time.Millisecond
	ctx, stop := context.WithCancel(context.Background())
	d, err := Run(ctx, cfg)
	if err != nil {
		stop()
		tb.Fatal(err)
	}
	s := &Site{Devnet: d, tb: tb, nonces: map[common.Address]uint64{}}
	tb.Cleanup(func() {
		stop()
		if err := d.Wait(); err != nil {
			tb.Errorf("the devnet ended with %v", err)
		}
	})
	s.chain, err = ethclient.DialContext(ctx, d.RPC())
	s.must(err)
	tb.Cleanup(s.chain.Close)
	s.users, err = exchange.NewClient(ctx, s.chain, d.Deployment())
	s.must(err)
	s.keepers, err = devnet.Accounts(devnet.FirstKeeper, devnet.Keepers)
	s.must(err)
	faucet, err := devnet.Accounts(devnet.FaucetIndex, 1)
	s.must(err)
	s.trader = faucet[0]
	for _, token := range d.Deployment().Tokens {
		s.done(s.users.Mint(ctx, s.trader.Key, token.Address, new(big.Int).
			Exp(big.NewInt(10), big.NewInt(int64(token.Decimals)+6), nil)))
		s.done(s.users.Approve(ctx, s.trader.Key, token.Address))
	}
	for _, m := range d.Deployment().Markets {
		s.done(s.users.Approve(ctx, s.trader.Key, m.Address))
	}
	return s
}

func (s *Site) must(err error) {
	s.tb.Helper()
	if err != nil {
		s.tb.Fatal(err)
	}
}

// done waits for a user's transaction, which has to succeed.
func (s *Site) done(hash common.Hash, err error) *types.Receipt {
	s.tb.Helper()
	s.must(err)
	receipt, err := s.users.Wait(s.tb.Context(), hash)
	s.must(err)
	return receipt
}

// Eventually waits for a condition.
func (s *Site) Eventually(what string, holds func() bool) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(s.tb.Context(), hangGuard)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.tb.Fatalf("never happened: %s", what)
		}
	}
}

// Market returns a market by its name.
func (s *Site) Market(name string) exchange.Market {
	s.tb.Helper()
	m, err := s.Deployment().MarketByName(name)
	s.must(err)
	return m
}

// Keeper is the account of the i-th keeper.
func (s *Site) Keeper(i int) common.Address { return s.keepers[i].Address }

// Request is what the trader has asked for: its key, and the second (Unix) since when it stands.
type Request struct {
	Key    common.Hash
	Second uint64
}

// Order makes the trader place an order.
func (s *Site) Order(r exchange.OrderRequest) Request {
	s.tb.Helper()
	return s.request(s.done(s.users.CreateOrder(s.tb.Context(), s.trader.Key, r)), "OrderCreated")
}

// Deposit makes the trader ask for a deposit.
func (s *Site) Deposit(r exchange.DepositRequest) Request {
	s.tb.Helper()
	return s.request(s.done(s.users.CreateDeposit(s.tb.Context(), s.trader.Key, r)), "DepositCreated")
}

// Withdrawal makes the trader ask for a withdrawal.
func (s *Site) Withdrawal(r exchange.WithdrawalRequest) Request {
	s.tb.Helper()
	return s.request(s.done(s.users.CreateWithdrawal(s.tb.Context(), s.trader.Key, r)), "WithdrawalCreated")
}

func (s *Site) request(receipt *types.Receipt, event string) Request {
	s.tb.Helper()
	key, ok := s.users.RequestKey(receipt, event)
	if !ok {
		s.tb.Fatalf("no %s", event)
	}
	header, err := s.chain.HeaderByHash(s.tb.Context(), receipt.BlockHash)
	s.must(err)
	return Request{key, header.Time}
}

// Reports are the first price reports of a market's tokens at or after a second; they may still have to come.
func (s *Site) Reports(m exchange.Market, second uint64) (params exchange.OracleParams) {
	s.tb.Helper()
	s.Eventually("price reports of the second", func() bool {
		params = exchange.OracleParams{}
		reports, err := s.Prices().At(second)
		s.must(err)
		for _, token := range m.PriceTokens() {
			for _, r := range reports {
				if r.Token == token {
					params.Add(token, r.Provider, r.Data)
				}
			}
		}
		return len(params.Tokens) == len(m.PriceTokens())
	})
	return params
}

// Now is the second of the newest block.
func (s *Site) Now() uint64 { return s.Node().Head().Time }

// Call is what a keeper sends.
type Call struct {
	To   common.Address
	Data []byte
}

// ExecuteOrder is the call that executes an order.
func (s *Site) ExecuteOrder(order common.Hash, prices exchange.OracleParams) Call {
	return s.call(contracts.OrderHandler, s.Deployment().Contracts.OrderHandler, "executeOrder", order, prices)
}

// ExecuteDeposit is the call that executes a deposit.
func (s *Site) ExecuteDeposit(deposit common.Hash, prices exchange.OracleParams) Call {
	return s.call(contracts.DepositHandler, s.Deployment().Contracts.DepositHandler, "executeDeposit", deposit, prices)
}

// ExecuteWithdrawal is the call that executes a withdrawal.
func (s *Site) ExecuteWithdrawal(withdrawal common.Hash, prices exchange.OracleParams) Call {
	return s.call(contracts.WithdrawalHandler, s.Deployment().Contracts.WithdrawalHandler, "executeWithdrawal",
		withdrawal, prices)
}

// ExecuteLiquidation is the call that liquidates the trader's position.
func (s *Site) ExecuteLiquidation(m exchange.Market, collateral common.Address, isLong bool,
	prices exchange.OracleParams) Call {
	return s.call(contracts.LiquidationHandler, s.Deployment().Contracts.LiquidationHandler, "executeLiquidation",
		s.trader.Address, m.Address, collateral, isLong, prices)
}

func (s *Site) call(contract contracts.Name, at common.Address, method string, args ...any) Call {
	s.tb.Helper()
	data, err := contracts.Get(contract).ABI.Pack(method, args...)
	s.must(err)
	return Call{at, data}
}

// Send makes the i-th keeper send a call, at so many times the price that the node suggests: the dearer one is mined
// first.
func (s *Site) Send(keeper int, c Call, times int64) common.Hash {
	s.tb.Helper()
	ctx, from := s.tb.Context(), s.keepers[keeper]
	nonce, known := s.nonces[from.Address]
	if !known {
		var err error
		nonce, err = s.chain.PendingNonceAt(ctx, from.Address)
		s.must(err)
	}
	s.nonces[from.Address] = nonce + 1
	price, err := s.chain.SuggestGasPrice(ctx)
	s.must(err)
	price.Mul(price, big.NewInt(times))
	chainID := new(big.Int).SetUint64(s.Deployment().ChainID)
	tx, err := types.SignNewTx(from.Key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: price, GasFeeCap: price, Gas: 8_000_000, To: &c.To, Data: c.Data,
	})
	s.must(err)
	s.must(s.chain.SendTransaction(ctx, tx))
	return tx.Hash()
}

// Mined waits for a transaction, whatever becomes of it.
func (s *Site) Mined(hash common.Hash) (receipt *types.Receipt) {
	s.tb.Helper()
	s.Eventually(fmt.Sprintf("transaction %s is mined", hash), func() bool {
		var err error
		receipt, err = s.chain.TransactionReceipt(s.tb.Context(), hash)
		if err != nil && err.Error() != ethereum.NotFound.Error() {
			s.tb.Fatal(err)
		}
		return err == nil
	})
	return receipt
}

// Race makes two keepers send the same call at the same time. The first pays more and has to succeed, the second has to
// revert.
func (s *Site) Race(first, second int, c Call) (winner, loser *types.Receipt) {
	s.tb.Helper()
	won, lost := s.Send(first, c, 2), s.Send(second, c, 1)
	winner, loser = s.Mined(won), s.Mined(lost)
	if winner.Status != types.ReceiptStatusSuccessful || loser.Status != types.ReceiptStatusFailed {
		_, err := s.users.Wait(s.tb.Context(), won)
		s.tb.Fatalf("the race ended %d (keeper %d: %v) to %d (keeper %d)", winner.Status, first, err, loser.Status,
			second)
	}
	return winner, loser
}

// Execute makes a keeper send a call that has to succeed.
func (s *Site) Execute(keeper int, c Call) *types.Receipt {
	s.tb.Helper()
	receipt := s.Mined(s.Send(keeper, c, 1))
	if receipt.Status != types.ReceiptStatusSuccessful {
		_, err := s.users.Wait(s.tb.Context(), receipt.TxHash)
		s.tb.Fatalf("the call of keeper %d reverted: %v", keeper, err)
	}
	return receipt
}
