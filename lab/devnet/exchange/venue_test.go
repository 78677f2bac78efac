package exchange

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"

	"perpkeeper/lab/devnet/contracts"
)

// venue is an exchange on a simulated chain, with a keeper for each role and prices that a test can move.
type venue struct {
	t      *testing.T
	ctx    context.Context //nolint:containedctx // a venue is one test, and this is that test's context
	sim    *simulated.Backend
	chain  lazyMiner
	d      *Deployment
	client *Client

	deployer, reporter, keeper, freezer *ecdsa.PrivateKey
	prices                              map[common.Address]Price
	accounts                            *int
}

// in is the same venue for a subtest.
func (v *venue) in(t *testing.T) *venue {
	inner := *v
	inner.t, inner.ctx = t, t.Context()
	return &inner
}

// london removes the later forks, so that the tests run, and gas costs, as on the devnet's chain.
func london(_ *node.Config, eth *ethconfig.Config) {
	config := *params.AllDevChainProtocolChanges
	config.ShanghaiTime, config.CancunTime, config.PragueTime, config.OsakaTime, config.BogotaTime = nil, nil, nil, nil,
		nil
	config.BlobScheduleConfig = nil
	eth.Genesis.Config = &config
}

// lazyMiner seals a block when somebody asks for a receipt that is not there yet, so that what is sent together is
// mined together.
type lazyMiner struct {
	simulated.Client
	sim *simulated.Backend
}

func (c lazyMiner) TransactionReceipt(ctx context.Context, hash common.Hash) (*types.Receipt, error) {
	receipt, err := c.Client.TransactionReceipt(ctx, hash)
	if err == nil {
		return receipt, nil
	}
	c.sim.Commit()
	return c.Client.TransactionReceipt(ctx, hash)
}

// highGasPrice is 10 gwei.
var highGasPrice = big.NewInt(10_000_000_000)

func testKey(seed string) *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte(seed)))
	if err != nil {
		panic(err)
	}
	return key
}

// maxAccounts is how many traders have native coin from the start.
const maxAccounts = 16

func traderKey(i int) *ecdsa.PrivateKey {
	return testKey(fmt.Sprintf("trader %d", i))
}

func coins(n int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(n), big.NewInt(1e18))
}

// usd is n dollars with 30 decimals.
func usd(n int64) *big.Int {
	return factor(n, 1)
}

// newVenue is a venue of the test's own, which runs beside others.
func newVenue(t *testing.T, change func(*Config)) *venue {
	t.Helper()
	t.Parallel()
	return anotherVenue(t, change)
}

// anotherVenue is one of several of a test's own.
func anotherVenue(t *testing.T, change func(*Config)) *venue {
	t.Helper()
	v, err := openVenue(t.Context(), change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.sim.Close(); err != nil {
			t.Errorf("closing the simulated chain: %v", err)
		}
	})
	return v.in(t)
}

// shared is one venue, as it was deployed, for all tests that only look.
var shared = sync.OnceValues(func() (*venue, error) { return openVenue(context.Background(), nil) })

func lookOnly(t *testing.T) *venue {
	t.Helper()
	v, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return v.in(t)
}

func openVenue(ctx context.Context, change func(*Config)) (*venue, error) {
	v := &venue{
		deployer: testKey("deployer"), reporter: testKey("reporter"), keeper: testKey("keeper"),
		freezer: testKey("freezer"),
		prices:  map[common.Address]Price{}, accounts: new(int),
	}
	genesis := types.GenesisAlloc{}
	for _, key := range []*ecdsa.PrivateKey{v.deployer, v.keeper, v.freezer} {
		genesis[addressOf(key)] = types.Account{Balance: coins(1_000_000)}
	}
	for i := range maxAccounts {
		genesis[addressOf(traderKey(i))] = types.Account{Balance: coins(1_000)}
	}
	v.sim = simulated.NewBackend(genesis, london)
	v.chain = lazyMiner{Client: v.sim.Client(), sim: v.sim}
	cfg := DefaultConfig(v.deployer, v.reporter, []Keeper{
		{Address: addressOf(v.keeper), Roles: []string{OrderKeeper, LiquidationKeeper, AdlKeeper}},
		{Address: addressOf(v.freezer), Roles: []string{OrderKeeper, LiquidationKeeper, FrozenOrderKeeper, AdlKeeper}},
	})
	if change != nil {
		change(&cfg)
	}
	var err error
	if v.d, err = Deploy(ctx, v.chain, cfg); err != nil {
		return nil, err
	}
	if v.client, err = NewClient(ctx, v.chain, v.d); err != nil {
		return nil, err
	}
	for _, token := range v.d.Tokens {
		v.prices[token.Address] = cfg.firstPrice(token.Symbol)
	}
	return v, nil
}

func (v *venue) token(symbol string) common.Address {
	v.t.Helper()
	token, err := v.d.TokenBySymbol(symbol)
	if err != nil {
		v.t.Fatal(err)
	}
	return token.Address
}

func (v *venue) market(name string) Market {
	v.t.Helper()
	m, err := v.d.MarketByName(name)
	if err != nil {
		v.t.Fatal(err)
	}
	return m
}

// setPrice takes millionths of a dollar for a whole token.
func (v *venue) setPrice(symbol string, minMicro, maxMicro int64) {
	v.t.Helper()
	token, _ := v.d.Token(v.token(symbol))
	v.prices[token.Address] = Price{Min: USD30(minMicro, token.Decimals), Max: USD30(maxMicro, token.Decimals)}
}

func (v *venue) now() uint64 {
	v.t.Helper()
	head, err := v.chain.HeaderByNumber(v.ctx, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return head.Time
}

// advance moves the chain's clock, a few seconds further if need be: the simulated chain does it only while its pool is
// empty, and the pool notices a new block a little later than we do.
func (v *venue) advance(d time.Duration) {
	v.t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for v.sim.AdjustTime(d) != nil {
		select {
		case <-v.ctx.Done():
			v.t.Fatal("the pool does not become empty")
		case <-ticker.C:
			v.sim.Commit()
		}
	}
}

// reports are the current prices for a market, as of a timestamp.
func (v *venue) reports(m Market, timestamp uint64) OracleParams {
	var params OracleParams
	for _, token := range m.PriceTokens() {
		report := SignReport(v.reporter, v.client.chainID, token, v.prices[token], timestamp)
		params.Add(token, v.d.Contracts.OracleProvider, report)
	}
	return params
}

// account is a new trader with native coin, tokens and approvals.
func (v *venue) account() *ecdsa.PrivateKey {
	v.t.Helper()
	key := traderKey(*v.accounts)
	*v.accounts++
	for _, token := range v.d.Tokens {
		v.must(v.client.Mint(v.ctx, key, token.Address, new(big.Int).
			Exp(big.NewInt(10), big.NewInt(int64(token.Decimals)+6), nil)))
		v.must(v.client.Approve(v.ctx, key, token.Address))
	}
	for _, m := range v.d.Markets {
		v.must(v.client.Approve(v.ctx, key, m.Address))
	}
	return key
}

// must waits for a transaction that has to succeed.
func (v *venue) must(hash common.Hash, err error) *types.Receipt {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	receipt, err := v.client.Wait(v.ctx, hash)
	if err != nil {
		v.t.Fatal(err)
	}
	return receipt
}

// order creates an order and returns its key.
func (v *venue) order(key *ecdsa.PrivateKey, r OrderRequest) common.Hash {
	v.t.Helper()
	receipt := v.must(v.client.CreateOrder(v.ctx, key, r))
	order, ok := v.client.RequestKey(receipt, "OrderCreated")
	if !ok {
		v.t.Fatal("no OrderCreated")
	}
	return order
}

// run sends a keeper's transaction, mines it and returns the receipt, failed or not.
func (v *venue) run(key *ecdsa.PrivateKey, c call) *types.Receipt {
	v.t.Helper()
	hash, err := v.client.submit(v.ctx, key, "executing", c)
	if err != nil {
		v.t.Fatal(err)
	}
	receipt, err := v.client.receipt(v.ctx, hash)
	if err != nil {
		v.t.Fatal(err)
	}
	return receipt
}

// simulate runs a call at the head and returns the name and arguments of the exchange's error, or "" if it succeeds.
func (v *venue) simulate(key *ecdsa.PrivateKey, c call) (string, []any) {
	v.t.Helper()
	_, err := v.chain.CallContract(v.ctx, ethereum.CallMsg{From: addressOf(key), To: c.to, Data: c.data, Gas: c.gas,
		Value: c.value}, nil)
	if err == nil {
		return "", nil
	}
	name, args, ok := revertOf(err)
	if !ok {
		v.t.Fatalf("not an error of the exchange: %v", err)
	}
	return name, args
}

// refused checks that a call fails now with this error.
func (v *venue) refused(key *ecdsa.PrivateKey, c call, want string) {
	v.t.Helper()
	if name, args := v.simulate(key, c); name != want {
		v.t.Errorf("got %q %v, want %s", name, args, want)
	}
}

// refusedAtPrice is like refused, for checks that depend on the transaction's gas price.
func (v *venue) refusedAtPrice(key *ecdsa.PrivateKey, c call, want string) {
	v.t.Helper()
	msg := ethereum.CallMsg{From: addressOf(key), To: c.to, Data: c.data, Gas: c.gas, Value: c.value,
		GasPrice: highGasPrice}
	_, err := v.chain.CallContract(v.ctx, msg, nil)
	if name, args, _ := revertOf(err); name != want {
		v.t.Errorf("got %q %v (%v), want %s", name, args, err, want)
	}
}

// race sends a keeper's call twice, by two keepers, and mines both into one block.
func (v *venue) race(c call) (first, second *types.Receipt) {
	v.t.Helper()
	var hashes []common.Hash
	for _, key := range []*ecdsa.PrivateKey{v.keeper, v.freezer} {
		hash, err := v.client.submit(v.ctx, key, "racing", c)
		if err != nil {
			v.t.Fatal(err)
		}
		hashes = append(hashes, hash)
	}
	receipts := make([]*types.Receipt, 2)
	for _, hash := range hashes {
		receipt, err := v.client.receipt(v.ctx, hash)
		if err != nil {
			v.t.Fatal(err)
		}
		receipts[receipt.TransactionIndex] = receipt
	}
	if receipts[0] == nil || receipts[1] == nil || receipts[0].BlockNumber.Cmp(receipts[1].BlockNumber) != 0 {
		v.t.Fatal("not mined into one block")
	}
	return receipts[0], receipts[1]
}

const keeperGas = 14_000_000

func (v *venue) executeOrder(order common.Hash, params OracleParams) call {
	return call{to: &v.d.Contracts.OrderHandler, data: pack(contracts.OrderHandler, "executeOrder", order, params),
		gas: keeperGas}
}

func (v *venue) executeLiquidation(account, market, collateral common.Address, isLong bool, params OracleParams) call {
	data := pack(contracts.LiquidationHandler, "executeLiquidation", account, market, collateral, isLong, params)
	return call{to: &v.d.Contracts.LiquidationHandler, data: data, gas: keeperGas}
}

func (v *venue) executeDeposit(deposit common.Hash, params OracleParams) call {
	return call{to: &v.d.Contracts.DepositHandler, data: pack(contracts.DepositHandler, "executeDeposit", deposit,
		params), gas: keeperGas}
}

func (v *venue) executeWithdrawal(key common.Hash, params OracleParams) call {
	return call{to: &v.d.Contracts.WithdrawalHandler, data: pack(contracts.WithdrawalHandler, "executeWithdrawal", key,
		params), gas: keeperGas}
}

// fill executes an order now and fails the test unless the transaction succeeds; the order may be cancelled or frozen.
func (v *venue) fill(order common.Hash, m Market) []event {
	v.t.Helper()
	receipt := v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now())))
	if receipt.Status != types.ReceiptStatusSuccessful {
		name, args := v.simulate(v.keeper, v.executeOrder(order, v.reports(m, v.now())))
		v.t.Fatalf("execution reverted: %s %v", name, args)
	}
	return v.events(receipt)
}

// open creates and executes a market increase in USDC collateral (whole dollars) and returns the events.
func (v *venue) open(key *ecdsa.PrivateKey, m Market, isLong bool, sizeUSD, collateralUSDC int64) []event {
	v.t.Helper()
	order := v.order(key, OrderRequest{
		Market: m.Address, Collateral: m.Short, Type: MarketIncrease, IsLong: isLong, SizeUSD: usd(sizeUSD),
		CollateralAmount: big.NewInt(collateralUSDC * 1e6),
	})
	events := v.fill(order, m)
	v.has(events, "OrderExecuted")
	return events
}
