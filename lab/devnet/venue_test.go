package devnet

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/devnet/exchange"
)

// keeperTest does by hand what a keeper does, with nothing but the addresses of the record.
type keeperTest struct {
	t      *testing.T
	d      *Devnet
	chain  *ethclient.Client
	client *exchange.Client
}

func newKeeperTest(t *testing.T) *keeperTest {
	t.Helper()
	cfg := quiet()
	cfg.BlockTime = 100 * time.Millisecond
	k := &keeperTest{t: t, d: start(t, cfg)}
	k.chain = dial(t, k.d.RPC())
	var err error
	if k.client, err = exchange.NewClient(t.Context(), k.chain, k.d.Deployment()); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *keeperTest) must(hash common.Hash, err error) *types.Receipt {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
	receipt, err := k.client.Wait(k.t.Context(), hash)
	if err != nil {
		k.t.Fatal(err)
	}
	return receipt
}

// reportsSince are the first reports a request made in that second may be executed with; they may still have to come.
func (k *keeperTest) reportsSince(second uint64, tokens []common.Address) exchange.OracleParams {
	k.t.Helper()
	var reports []report
	eventually(k.t, "reports of the second", func() bool {
		getJSON(k.t, fmt.Sprintf("%s/v1/reports?at=%d", k.d.Feed(), second), &reports)
		return len(reports) > 0
	})
	var params exchange.OracleParams
	for _, token := range tokens {
		for _, r := range reports {
			if r.Token == token {
				params.Add(token, r.Provider, r.Data)
			}
		}
	}
	return params
}

// execute signs with a keeper's key from the record.
func (k *keeperTest) execute(handler contracts.Name, at common.Address, method string, args ...any) *types.Receipt {
	k.t.Helper()
	accounts := k.d.Record().Accounts
	keeper := slices.IndexFunc(accounts, func(a RecordAccount) bool { return a.Purpose == "keeper" })
	key, err := crypto.ToECDSA(accounts[keeper].PrivateKey)
	if err != nil {
		k.t.Fatal(err)
	}
	data, err := contracts.Get(handler).ABI.Pack(method, args...)
	if err != nil {
		k.t.Fatal(err)
	}
	nonce, err := k.chain.PendingNonceAt(k.t.Context(), crypto.PubkeyToAddress(key.PublicKey))
	if err != nil {
		k.t.Fatal(err)
	}
	price, err := k.chain.SuggestGasPrice(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	chainID := new(big.Int).SetUint64(k.d.Deployment().ChainID)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: price, GasFeeCap: price, Gas: 8_000_000, To: &at, Data: data,
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return k.must(tx.Hash(), k.chain.SendTransaction(k.t.Context(), tx))
}

// trader is the faucet's account with tokens and approvals.
func (k *keeperTest) trader(m exchange.Market) Account {
	k.t.Helper()
	accounts, err := Accounts(FaucetIndex, 1)
	if err != nil {
		k.t.Fatal(err)
	}
	k.must(k.client.Mint(k.t.Context(), accounts[0].Key, m.Short, big.NewInt(1e12)))
	k.must(k.client.Approve(k.t.Context(), accounts[0].Key, m.Short))
	return accounts[0]
}

// order makes a 10× long with 1000 USDC.
func (k *keeperTest) order(trader Account, m exchange.Market) *types.Receipt {
	k.t.Helper()
	size := new(big.Int).Exp(big.NewInt(10), big.NewInt(34), nil)
	return k.must(k.client.CreateOrder(k.t.Context(), trader.Key, exchange.OrderRequest{
		Market: m.Address, Collateral: m.Short, Type: exchange.MarketIncrease, IsLong: true, SizeUSD: size,
		CollateralAmount: big.NewInt(1e9),
	}))
}

// fill executes the order that a transaction has created.
func (k *keeperTest) fill(created *types.Receipt, m exchange.Market) *types.Receipt {
	k.t.Helper()
	order, ok := k.client.RequestKey(created, "OrderCreated")
	if !ok {
		k.t.Fatal("no OrderCreated")
	}
	block, err := k.chain.HeaderByHash(k.t.Context(), created.BlockHash)
	if err != nil {
		k.t.Fatal(err)
	}
	prices := k.reportsSince(block.Time, m.PriceTokens())
	return k.execute(contracts.OrderHandler, k.d.Deployment().Contracts.OrderHandler, "executeOrder", order, prices)
}

func (k *keeperTest) position(trader Account, m exchange.Market) (exchange.Position, bool) {
	k.t.Helper()
	p, open, err := k.client.Position(k.t.Context(), trader.Address, m.Address, m.Short, true)
	if err != nil {
		k.t.Fatal(err)
	}
	return p, open
}

// An order is executed with reports of the feed, a shock makes the position liquidatable, and it is liquidated: over
// HTTP, with blocks that come by themselves.
func TestOrderShockLiquidation(t *testing.T) {
	k := newKeeperTest(t)
	m := k.d.Deployment().Markets[0]
	trader := k.trader(m)
	k.fill(k.order(trader, m), m)
	position, open := k.position(trader, m)
	if !open {
		t.Fatal("the order opened no position")
	}
	if err := k.d.Shock("WETH", -1500); err != nil {
		t.Fatal(err)
	}
	shocked := uint64(time.Now().Unix()) + 1 // From the next second on every report has the new price.
	prices := k.reportsSince(max(shocked, position.IncreasedAtTime.Uint64()), m.PriceTokens())
	k.execute(contracts.LiquidationHandler, k.d.Deployment().Contracts.LiquidationHandler, "executeLiquidation",
		trader.Address, m.Address, m.Short, true, prices)
	if _, open := k.position(trader, m); open {
		t.Error("the position is still open")
	}
}

// A fork may put the keeper's transaction before the user's, where it fails; then the order waits for a second attempt,
// which succeeds.
func TestOrderSurvivesAReplayedFork(t *testing.T) {
	k := newKeeperTest(t)
	m := k.d.Deployment().Markets[0]
	trader := k.trader(m)
	created := k.order(trader, m)
	filled := k.fill(created, m)
	depth := k.d.Node().Head().Number.Uint64() - created.BlockNumber.Uint64() + 1
	if _, err := k.d.Reorg(depth, evmnode.Replay); err != nil {
		t.Fatal(err)
	}
	k.mined(created.TxHash)
	if attempt := k.mined(filled.TxHash); attempt.Status == types.ReceiptStatusFailed {
		k.fill(k.mined(created.TxHash), m)
	}
	if _, open := k.position(trader, m); !open {
		t.Error("the order opened no position")
	}
}

// mined waits for a transaction that may fail.
func (k *keeperTest) mined(hash common.Hash) (receipt *types.Receipt) {
	k.t.Helper()
	eventually(k.t, "transaction on the new branch", func() bool {
		var err error
		receipt, err = k.chain.TransactionReceipt(k.t.Context(), hash)
		return err == nil
	})
	return receipt
}
