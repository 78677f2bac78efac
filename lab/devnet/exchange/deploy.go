package exchange

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/lab/devnet/contracts"
)

// Gas limits of the deployment's transactions, generous: unused gas costs nothing on a devnet.
const (
	gasToDeploy       = 6_500_000
	gasToConfigure    = 500_000
	gasToCreateMarket = 4_000_000
	gasToProvide      = 6_000_000
)

// Deploy creates the whole exchange: contracts, roles, parameters, markets and their first liquidity. It returns when
// the last transaction is in a block. The addresses follow from the deployer's address alone, which must be fresh.
//
// It gives up at the first transaction that fails, with a *RevertError, and leaves what it has created behind; a second
// attempt needs another deployer. A reorg during the deployment is not handled.
func Deploy(ctx context.Context, backend Backend, cfg Config) (*Deployment, error) {
	s, err := newSender(ctx, backend)
	if err != nil {
		return nil, err
	}
	d := &deployer{sender: s, cfg: cfg, self: addressOf(cfg.Deployer), libraries: map[contracts.Name]common.Address{}}
	d.nonce, err = backend.PendingNonceAt(ctx, d.self)
	if err != nil {
		return nil, fmt.Errorf("reading the deployer's nonce: %w", err)
	}
	if d.nonce != 0 {
		return nil, fmt.Errorf("deployer %s has sent %d transactions before: a deployment needs a fresh account",
			d.self, d.nonce)
	}
	d.out = &Deployment{ChainID: s.chainID.Uint64(), Version: cfg.Version, Deployer: d.self,
		ReportSigner: addressOf(cfg.ReportKey), Keepers: cfg.Keepers}
	for _, stage := range []func(context.Context) error{d.contracts, d.roles, d.parameters, d.markets,
		d.marketParameters, d.glvs, d.liquidity, d.retire} {
		if err := stage(ctx); err != nil {
			return nil, fmt.Errorf("deploying the exchange: %w", err)
		}
	}
	return d.out, nil
}

// deployer collects the calls of a stage and sends them in one go; a stage ends when all of them are in blocks.
type deployer struct {
	sender
	cfg     Config
	self    common.Address
	nonce   uint64
	pending []call
	// libraries are those that are created, or will be with what is pending.
	libraries map[contracts.Name]common.Address
	out       *Deployment
}

// flush sends the collected calls and returns their receipts, all successful, in order.
func (d *deployer) flush(ctx context.Context) ([]*types.Receipt, error) {
	calls := d.pending
	d.pending = nil
	hashes := make([]common.Hash, len(calls))
	for i, c := range calls {
		hash, err := d.send(ctx, d.cfg.Deployer, d.nonce, c)
		if err != nil {
			return nil, err
		}
		hashes[i] = hash
		d.nonce++
	}
	receipts := make([]*types.Receipt, len(calls))
	for i, hash := range hashes {
		receipt, err := d.receipt(ctx, hash)
		if err != nil {
			return nil, err
		}
		if err := d.succeeded(ctx, d.self, calls[i], receipt); err != nil {
			return nil, err
		}
		receipts[i] = receipt
	}
	return receipts, nil
}

// create queues the deployment of a contract, after that of the libraries it calls, and returns its address to be.
func (d *deployer) create(name contracts.Name, args ...any) common.Address {
	contract := contracts.Of(d.cfg.Version, name)
	for _, library := range contract.Libraries {
		if _, created := d.libraries[library]; !created {
			d.libraries[library] = d.create(library)
		}
	}
	code, err := contract.CreationCode(d.libraries, args...)
	if err != nil {
		panic(fmt.Sprintf("deploying %s: %v", name, err))
	}
	address := crypto.CreateAddress(d.self, d.nonce+uint64(len(d.pending)))
	d.pending = append(d.pending, call{data: code, gas: gasToDeploy})
	return address
}

// invoke queues a call of a contract.
func (d *deployer) invoke(name contracts.Name, at common.Address, gas uint64, method string, args ...any) {
	d.pending = append(d.pending, call{to: &at, data: pack(name, method, args...), gas: gas})
}

func (d *deployer) contracts(ctx context.Context) error {
	a := &d.out.Contracts
	a.RoleStore = d.create(contracts.RoleStore)
	a.DataStore = d.create(contracts.DataStore, a.RoleStore)
	a.EventEmitter = d.create(contracts.EventEmitter, a.RoleStore)
	a.Oracle = d.create(contracts.Oracle, a.RoleStore, a.DataStore, a.EventEmitter)
	a.OracleProvider = d.create(contracts.DevnetOracleProvider, a.DataStore)
	a.StaticProvider = d.create(contracts.StaticOracleProvider, a.DataStore)
	a.Config = d.create(contracts.Config, a.RoleStore, a.DataStore, a.EventEmitter, a.Oracle, a.StaticProvider)
	a.MarketFactory = d.create(contracts.MarketFactory, a.RoleStore, a.DataStore, a.EventEmitter)
	for _, vault := range []*common.Address{&a.OrderVault, &a.DepositVault, &a.WithdrawalVault, &a.ShiftVault,
		&a.GlvVault} {
		*vault = d.create(contracts.RequestVault, a.RoleStore)
	}
	a.OrderBook = d.create(contracts.OrderBook, a.RoleStore, a.DataStore, a.EventEmitter)
	a.SwapHandler = d.create(contracts.SwapHandler, a.RoleStore, a.DataStore, a.EventEmitter, a.Oracle)
	a.PositionBook = d.create(contracts.PositionBook, a.RoleStore, a.DataStore, a.EventEmitter, a.SwapHandler)
	a.GlvFactory = d.create(contracts.GlvFactory, a.RoleStore, a.DataStore, a.EventEmitter)
	a.PoolBook = d.create(contracts.PoolBook, a.RoleStore, a.DataStore, a.EventEmitter, a.Oracle)
	a.Router, a.Reader = d.create(contracts.Router, a.RoleStore), d.create(contracts.Reader)
	a.CallbackCounter, a.GasBurner = d.create(contracts.CallbackCounter), d.create(contracts.GasBurner)
	d.handlers()
	for _, t := range d.cfg.Tokens {
		address := d.create(contracts.MintableToken, t.Symbol, t.Symbol, t.Decimals)
		d.out.Tokens = append(d.out.Tokens, Token{Symbol: t.Symbol, Address: address, Decimals: t.Decimals})
	}
	receipts, err := d.flush(ctx)
	if err != nil {
		return fmt.Errorf("creating the contracts: %w", err)
	}
	d.out.Block = receipts[0].BlockNumber.Uint64()
	return nil
}

// handlers are those of the configured version, and the router that knows all whom users ask. They hold nothing: what
// is pending stays where others find it.
func (d *deployer) handlers() {
	a := &d.out.Contracts
	own := []any{a.RoleStore, a.DataStore, a.EventEmitter, a.Oracle}
	with := func(more ...any) []any { return slices.Concat(own, more) }
	orders := with(a.OrderBook, a.PositionBook, a.OrderVault)
	a.OrderHandler = d.create(contracts.OrderHandler, append(slices.Clone(orders), a.SwapHandler)...)
	a.LiquidationHandler = d.create(contracts.LiquidationHandler, orders...)
	a.AdlHandler = d.create(contracts.AdlHandler, orders...)
	a.DepositHandler = d.create(contracts.DepositHandler, with(a.DepositVault, a.SwapHandler)...)
	a.WithdrawalHandler = d.create(contracts.WithdrawalHandler, with(a.WithdrawalVault, a.SwapHandler)...)
	a.ShiftHandler = d.create(contracts.ShiftHandler, with(a.PoolBook, a.ShiftVault)...)
	a.GlvShiftHandler = d.create(contracts.GlvShiftHandler, with(a.GlvFactory, a.PoolBook)...)
	a.GlvDepositHandler = d.create(contracts.GlvDepositHandler, with(a.GlvFactory, a.PoolBook, a.GlvVault)...)
	a.GlvWithdrawalHandler = d.create(contracts.GlvWithdrawalHandler, with(a.GlvFactory, a.PoolBook, a.GlvVault)...)
	a.ExchangeRouter = d.create(contracts.ExchangeRouter, a.Router, a.OrderHandler, a.DepositHandler,
		a.WithdrawalHandler, a.ShiftHandler, a.GlvDepositHandler, a.GlvWithdrawalHandler)
}

// versioned are the contracts that an upgrade replaces.
func (a Addresses) versioned() []common.Address {
	return []common.Address{a.OrderHandler, a.LiquidationHandler, a.AdlHandler, a.DepositHandler, a.WithdrawalHandler,
		a.ShiftHandler, a.GlvShiftHandler, a.GlvDepositHandler, a.GlvWithdrawalHandler, a.ExchangeRouter}
}

func (d *deployer) roles(ctx context.Context) error {
	a := d.out.Contracts
	for _, controller := range []common.Address{a.Config, a.MarketFactory, a.Oracle, a.OrderBook, a.PositionBook,
		a.SwapHandler, a.GlvFactory, a.PoolBook} {
		d.grant(controller, "CONTROLLER")
	}
	d.empower(a)
	for _, role := range []string{"CONTROLLER", "CONFIG_KEEPER", "MARKET_KEEPER", OrderKeeper} {
		d.grant(d.self, role)
	}
	if d.cfg.GlvManager != (common.Address{}) {
		d.grant(d.cfg.GlvManager, OrderKeeper)
	}
	for _, keeper := range d.cfg.Keepers {
		for _, role := range keeper.Roles {
			d.grant(keeper.Address, role)
		}
	}
	if _, err := d.flush(ctx); err != nil {
		return fmt.Errorf("granting roles: %w", err)
	}
	return nil
}

// empower lets handlers and router of a version work.
func (d *deployer) empower(a Addresses) {
	for _, controller := range a.versioned() {
		d.grant(controller, "CONTROLLER")
	}
	d.grant(a.ExchangeRouter, "ROUTER_PLUGIN")
}

// parameters sets what belongs to no market. Some values go straight into the DataStore, without an event, as on the
// original's networks: a keeper has to read them by call.
func (d *deployer) parameters(ctx context.Context) error {
	p := d.cfg.Parameters
	d.setSilently("REQUEST_EXPIRATION_TIME", seconds(p.RequestExpiration))
	d.setSilently("MAX_ORACLE_PRICE_AGE", seconds(p.MaxOraclePriceAge))
	d.setSilently("LIQUIDATION_RATIO_FACTOR", p.LiquidationRatioFactor)
	a := d.out.Contracts
	d.invoke(contracts.Config, a.Config, gasToConfigure, "setAddress", contracts.BaseKey("DEVNET_ORACLE_SIGNER"),
		[]byte{}, d.out.ReportSigner)
	for _, provider := range []common.Address{a.OracleProvider, a.StaticProvider} {
		d.invoke(contracts.Config, a.Config, gasToConfigure, "setBool",
			contracts.BaseKey("IS_ORACLE_PROVIDER_ENABLED"), contracts.Encode(provider), true)
	}
	for _, t := range d.out.Tokens {
		d.invoke(contracts.Config, a.Config, gasToConfigure, "initOracleProviderForToken", a.Oracle, t.Address,
			a.OracleProvider)
	}
	hundredPercent := factor(1, 1)
	for _, setting := range []struct {
		name  string
		value *big.Int
	}{
		{"MIN_COLLATERAL_USD", p.MinCollateralUSD},
		{"MIN_POSITION_SIZE_USD", p.MinPositionSizeUSD},
		{"MAX_ORACLE_TIMESTAMP_RANGE", seconds(p.MaxOracleTimestampRange)},
		{"MAX_AUTO_CANCEL_ORDERS", big.NewInt(p.MaxAutoCancelOrders)},
		{"MAX_DATA_LENGTH", big.NewInt(p.MaxDataLength)},
		{"INCREASE_ORDER_GAS_LIMIT", big.NewInt(p.IncreaseOrderGasLimit)},
		{"DECREASE_ORDER_GAS_LIMIT", big.NewInt(p.DecreaseOrderGasLimit)},
		{"SWAP_ORDER_GAS_LIMIT", big.NewInt(p.SwapOrderGasLimit)},
		{"SINGLE_SWAP_GAS_LIMIT", big.NewInt(p.SingleSwapGasLimit)},
		{"MAX_SWAP_PATH_LENGTH", big.NewInt(p.MaxSwapPathLength)},
		{"MAX_CALLBACK_GAS_LIMIT", big.NewInt(p.MaxCallbackGasLimit)},
		{"MAX_TOTAL_CALLBACK_GAS_LIMIT_FOR_AUTO_CANCEL_ORDERS", big.NewInt(p.MaxTotalCallbackGasLimit)},
		{"REFUND_EXECUTION_FEE_GAS_LIMIT", big.NewInt(p.RefundExecutionFeeGasLimit)},
		{"ESTIMATED_GAS_FEE_PER_ORACLE_PRICE", big.NewInt(p.GasFeePerOraclePrice)},
		{"EXECUTION_GAS_FEE_PER_ORACLE_PRICE", big.NewInt(p.GasFeePerOraclePrice)},
		{"SWAP_FEE_RECEIVER_FACTOR", p.SwapFeeReceiverFactor},
		{"MAX_UI_FEE_FACTOR", p.MaxUIFeeFactor},
		{"DEPOSIT_GAS_LIMIT", big.NewInt(p.DepositGasLimit)},
		{"WITHDRAWAL_GAS_LIMIT", big.NewInt(p.WithdrawalGasLimit)},
		{"SHIFT_GAS_LIMIT", big.NewInt(p.ShiftGasLimit)},
		{"GLV_DEPOSIT_GAS_LIMIT", big.NewInt(p.GlvDepositGasLimit)},
		{"GLV_WITHDRAWAL_GAS_LIMIT", big.NewInt(p.GlvWithdrawalGasLimit)},
		{"GLV_SHIFT_GAS_LIMIT", big.NewInt(p.GlvShiftGasLimit)},
		{"GLV_PER_MARKET_GAS_LIMIT", big.NewInt(p.GlvPerMarketGasLimit)},
		{"MIN_ADDITIONAL_GAS_FOR_EXECUTION", big.NewInt(p.MinAdditionalGasForExecution)},
		{"MIN_HANDLE_EXECUTION_ERROR_GAS_TO_FORWARD", big.NewInt(p.MinHandleExecutionErrorGasToForward)},
		{"MIN_HANDLE_EXECUTION_ERROR_GAS", big.NewInt(p.MinHandleExecutionErrorGas)},
		{"ESTIMATED_GAS_FEE_BASE_AMOUNT_V2_1", big.NewInt(p.GasFeeBaseAmount)},
		{"ESTIMATED_GAS_FEE_MULTIPLIER_FACTOR", hundredPercent},
		{"EXECUTION_GAS_FEE_BASE_AMOUNT_V2_1", big.NewInt(p.GasFeeBaseAmount)},
		{"EXECUTION_GAS_FEE_MULTIPLIER_FACTOR", hundredPercent},
		{"DEVNET_LIQUIDATION_BURN", big.NewInt(p.LiquidationBurn)},
	} {
		d.set(setting.name, setting.value)
	}
	if _, err := d.flush(ctx); err != nil {
		return fmt.Errorf("setting parameters: %w", err)
	}
	return nil
}

// glvs creates the GLVs and adds their markets.
func (d *deployer) glvs(ctx context.Context) error {
	for _, spec := range d.cfg.Glvs {
		long, _ := d.out.TokenBySymbol(spec.Long)
		short, _ := d.out.TokenBySymbol(spec.Short)
		d.out.Glvs = append(d.out.Glvs, Glv{Name: spec.Name, Long: long.Address, Short: short.Address})
		d.invoke(contracts.GlvFactory, d.out.Contracts.GlvFactory, gasToCreateMarket, "createGlv",
			long.Address, short.Address, contracts.BaseKey(spec.Name))
	}
	receipts, err := d.flush(ctx)
	if err != nil {
		return fmt.Errorf("creating GLVs: %w", err)
	}
	for i, receipt := range receipts {
		topic, ok := eventTopic(d.out.Contracts.EventEmitter, receipt, "GlvCreated")
		if !ok {
			return fmt.Errorf("creating %s: no GlvCreated in transaction %s", d.out.Glvs[i].Name, receipt.TxHash)
		}
		g := &d.out.Glvs[i]
		g.Address = common.BytesToAddress(topic[:])
		for _, name := range d.cfg.Glvs[i].Markets {
			m, _ := d.out.MarketByName(name)
			g.Markets = append(g.Markets, m.Address)
			d.invoke(contracts.GlvFactory, d.out.Contracts.GlvFactory, gasToConfigure, "addMarketToGlv", g.Address,
				m.Address)
		}
		d.set("GLV_SHIFT_MIN_INTERVAL", seconds(d.cfg.Parameters.GlvShiftMinInterval), g.Address)
	}
	if _, err := d.flush(ctx); err != nil {
		return fmt.Errorf("adding markets to GLVs: %w", err)
	}
	return nil
}

// retire takes back the roles that only the deployment needed.
func (d *deployer) retire(ctx context.Context) error {
	for _, role := range []string{"CONTROLLER", OrderKeeper} {
		d.revoke(d.self, role)
	}
	if _, err := d.flush(ctx); err != nil {
		return fmt.Errorf("revoking the deployer's roles: %w", err)
	}
	return nil
}

func (d *deployer) grant(to common.Address, role string) {
	d.invoke(contracts.RoleStore, d.out.Contracts.RoleStore, gasToConfigure, "grantRole", to, contracts.RoleKey(role))
}

func (d *deployer) revoke(from common.Address, role string) {
	d.invoke(contracts.RoleStore, d.out.Contracts.RoleStore, gasToConfigure, "revokeRole", from,
		contracts.RoleKey(role))
}

func (d *deployer) set(name string, value *big.Int, args ...any) {
	d.invoke(contracts.Config, d.out.Contracts.Config, gasToConfigure, "setUint", contracts.BaseKey(name),
		contracts.Encode(args...), value)
}

func (d *deployer) setSilently(name string, value *big.Int) {
	d.invoke(contracts.DataStore, d.out.Contracts.DataStore, gasToConfigure, "setUint", contracts.Key(name), value)
}

// eventTopic finds an event of the exchange in a receipt and returns its topic1: the key of a request, or a market.
func eventTopic(emitter common.Address, receipt *types.Receipt, name string) (common.Hash, bool) {
	all := eventTopics(emitter, receipt, name)
	if len(all) == 0 {
		return common.Hash{}, false
	}
	return all[0], true
}

// eventTopics are those of all events of that name.
func eventTopics(emitter common.Address, receipt *types.Receipt, name string) (topics []common.Hash) {
	nameHash := crypto.Keccak256Hash([]byte(name))
	for _, log := range receipt.Logs {
		if log.Address == emitter && len(log.Topics) > 2 && log.Topics[1] == nameHash {
			topics = append(topics, log.Topics[2])
		}
	}
	return topics
}

// pack encodes a call. It panics when the arguments do not fit the method, which is a fault of this package.
func pack(name contracts.Name, method string, args ...any) []byte {
	data, err := contracts.Get(name).ABI.Pack(method, args...)
	if err != nil {
		panic(fmt.Sprintf("packing %s.%s: %v", name, method, err))
	}
	return data
}

func seconds(d time.Duration) *big.Int {
	return big.NewInt(int64(d / time.Second))
}
