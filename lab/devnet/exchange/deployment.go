package exchange

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/contracts"
)

// Deployment says where an exchange lives. It is all that a keeper, a trader or a price feed has to be told; it is
// written as JSON.
type Deployment struct {
	ChainID uint64            `json:"chainId"`
	Version contracts.Version `json:"version"`
	// Block holds the first of the deployment's transactions: reading logs from here misses nothing.
	Block uint64 `json:"block"`
	// Deployer administers the exchange: it may grant roles and change parameters through Config.
	Deployer common.Address `json:"deployer"`
	// ReportSigner signs the price reports that the oracle provider accepts.
	ReportSigner common.Address `json:"reportSigner"`
	Contracts    Addresses      `json:"contracts"`
	Tokens       []Token        `json:"tokens"`
	Markets      []Market       `json:"markets"`
	Glvs         []Glv          `json:"glvs"`
	Keepers      []Keeper       `json:"keepers"`
}

// Addresses of the exchange's contracts.
type Addresses struct {
	RoleStore          common.Address `json:"roleStore"`
	DataStore          common.Address `json:"dataStore"`
	EventEmitter       common.Address `json:"eventEmitter"`
	Config             common.Address `json:"config"`
	MarketFactory      common.Address `json:"marketFactory"`
	Oracle             common.Address `json:"oracle"`
	OracleProvider     common.Address `json:"oracleProvider"`
	StaticProvider     common.Address `json:"staticProvider"`
	OrderVault         common.Address `json:"orderVault"`
	DepositVault       common.Address `json:"depositVault"`
	WithdrawalVault    common.Address `json:"withdrawalVault"`
	OrderBook          common.Address `json:"orderBook"`
	PositionBook       common.Address `json:"positionBook"`
	OrderHandler       common.Address `json:"orderHandler"`
	LiquidationHandler common.Address `json:"liquidationHandler"`
	DepositHandler     common.Address `json:"depositHandler"`
	WithdrawalHandler  common.Address `json:"withdrawalHandler"`
	SwapHandler        common.Address `json:"swapHandler"`
	// Router is what users approve their tokens to, ExchangeRouter where they ask for something.
	Router         common.Address `json:"router"`
	ExchangeRouter common.Address `json:"exchangeRouter"`

	AdlHandler           common.Address `json:"adlHandler"`
	ShiftVault           common.Address `json:"shiftVault"`
	ShiftHandler         common.Address `json:"shiftHandler"`
	GlvFactory           common.Address `json:"glvFactory"`
	GlvVault             common.Address `json:"glvVault"`
	GlvDepositHandler    common.Address `json:"glvDepositHandler"`
	GlvWithdrawalHandler common.Address `json:"glvWithdrawalHandler"`
	GlvShiftHandler      common.Address `json:"glvShiftHandler"`
	PoolBook             common.Address `json:"poolBook"`
	Reader               common.Address `json:"reader"`

	// CallbackCounter and GasBurner are callback contracts: one counts its calls and takes refunds, the other uses up
	// all the gas it is given.
	CallbackCounter common.Address `json:"callbackCounter"`
	GasBurner       common.Address `json:"gasBurner"`
}

// Token is an ERC-20 that anyone may mint.
type Token struct {
	Symbol   string         `json:"symbol"`
	Address  common.Address `json:"address"`
	Decimals uint8          `json:"decimals"`
}

// Market is what is traded (index) and the two tokens of its pool. Its address is that of its market token. One without
// an index token only swaps.
type Market struct {
	Name    string         `json:"name"`
	Address common.Address `json:"address"`
	Index   common.Address `json:"indexToken"`
	Long    common.Address `json:"longToken"`
	Short   common.Address `json:"shortToken"`
}

// Glv spreads liquidity over markets of the same pool tokens. Its address is that of its GLV token.
type Glv struct {
	Name    string           `json:"name"`
	Address common.Address   `json:"address"`
	Long    common.Address   `json:"longToken"`
	Short   common.Address   `json:"shortToken"`
	Markets []common.Address `json:"markets"`
}

// Keeper is an account that was granted roles.
type Keeper struct {
	Address common.Address `json:"address"`
	// Roles are role names such as "ORDER_KEEPER".
	Roles []string `json:"roles"`
}

// Token returns the token with this address. It reports false for a token the exchange does not know.
func (d *Deployment) Token(address common.Address) (Token, bool) {
	for _, t := range d.Tokens {
		if t.Address == address {
			return t, true
		}
	}
	return Token{}, false
}

// TokenBySymbol returns the token with this symbol, or an error that names it.
func (d *Deployment) TokenBySymbol(symbol string) (Token, error) {
	for _, t := range d.Tokens {
		if t.Symbol == symbol {
			return t, nil
		}
	}
	return Token{}, fmt.Errorf("the exchange has no token %q", symbol)
}

// MarketByName returns the market with this name, or an error that names it.
func (d *Deployment) MarketByName(name string) (Market, error) {
	for _, m := range d.Markets {
		if m.Name == name {
			return m, nil
		}
	}
	return Market{}, fmt.Errorf("the exchange has no market %q", name)
}

// MarketsOf lists the markets of a GLV, in the order in which they were added.
func (d *Deployment) MarketsOf(g Glv) []Market {
	markets := make([]Market, 0, len(g.Markets))
	for _, address := range g.Markets {
		for _, m := range d.Markets {
			if m.Address == address {
				markets = append(markets, m)
			}
		}
	}
	return markets
}

// priceTokensOf lists the tokens whose prices an execution in these markets needs, each once.
func priceTokensOf(markets ...Market) []common.Address {
	var tokens []common.Address
	for _, m := range markets {
		for _, t := range m.PriceTokens() {
			if !slices.Contains(tokens, t) {
				tokens = append(tokens, t)
			}
		}
	}
	return tokens
}

// SwapsOnly reports whether the market has no positions.
func (m Market) SwapsOnly() bool { return m.Index == (common.Address{}) }

// PriceTokens lists the tokens whose prices an execution in this market needs, each once.
func (m Market) PriceTokens() []common.Address {
	var tokens []common.Address
	for _, t := range []common.Address{m.Index, m.Long, m.Short} {
		if t != (common.Address{}) && !slices.Contains(tokens, t) {
			tokens = append(tokens, t)
		}
	}
	return tokens
}
