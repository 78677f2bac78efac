package devnet

import (
	"errors"
	"fmt"
	"net"
	"time"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/devnet/pricefeed"
)

// Process is the whole configuration of the process.
type Process struct {
	Devnet Config `toml:"devnet"`
}

// Validate is for what concerns several sections at once; there is one.
func (p Process) Validate() error { return nil }

// DefaultProcess listens on the ports development chains usually have.
func DefaultProcess() Process {
	cfg := DefaultConfig()
	cfg.RPC, cfg.Feed, cfg.Out = "127.0.0.1:8545", "127.0.0.1:8546", "deployment.json"
	cfg.ShockEvery = 15 * time.Second
	return Process{Devnet: cfg}
}

// Config is the [devnet] section.
type Config struct {
	RPC           string        `toml:"rpc" help:"address for JSON-RPC, over HTTP and WebSocket; port 0 takes a free one"`
	Feed          string        `toml:"feed" help:"address of the price feed; port 0 takes a free one"`
	Host          string        `toml:"host" help:"host name the deployment record gives to clients; empty = that of the two addresses"`
	Out           string        `toml:"out" help:"file the deployment record is written to once everything is up; empty = none"`
	ChainID       uint64        `toml:"chain_id" help:"id of the chain"`
	BlockTime     time.Duration `toml:"block_time" help:"time between two blocks"`
	GasLimit      uint64        `toml:"gas_limit" help:"gas of a block"`
	PaymentLane   uint64        `toml:"payment_lane" help:"percent of a block's gas that is kept for payments: 0 is BSC before its Jenner fork, 5 after"`
	PriceInterval time.Duration `toml:"price_interval" help:"time between two reports of a token's price"`
	ShockEvery    time.Duration `toml:"shock_every" help:"time between two jumps of a price by about one percent; 0 = prices only walk"`
	Rate          int           `toml:"rate" help:"actions of the traders per second; 0 = nobody trades"`
	Contracts     string        `toml:"contracts" help:"version of the exchange's contracts: v2.2c, or v2.2b before it"`
	// LiquidationRatio is the venue's threshold: GMX's rule is 1.
	LiquidationRatio string `toml:"liquidation_ratio" help:"positions are liquidated below this margin ratio: 1 is the rule of GMX, 1.10 that of a stricter venue"`
	// LiquidationBurn makes blocks as full as on a chain where a liquidation does more: on the original's it takes
	// about 2.4 million, on the devnet 1.1 million.
	LiquidationBurn uint64 `toml:"liquidation_burn" help:"gas that a liquidation burns beside its own work, which takes about 1100000"`
	Dir             string `toml:"dir" help:"new folder for blocks and states, for chains of some hours; empty = memory"`
	Seed            uint64 `toml:"seed" help:"decides prices, trades and where forks put transactions"`
}

// DefaultConfig is a chain with BSC's block time on free ports, without a file.
func DefaultConfig() Config {
	return Config{
		RPC: "127.0.0.1:0", Feed: "127.0.0.1:0", ChainID: evmnode.DefaultChainID, BlockTime: evmnode.DefaultBlockTime,
		GasLimit:      evmnode.DefaultGasLimit,
		PriceInterval: pricefeed.DefaultInterval, Rate: 2, Seed: 1, LiquidationRatio: "1",
		Contracts: string(contracts.V22C),
	}
}

// Validate names every setting that cannot work.
func (c Config) Validate() error {
	var problems []error
	for _, address := range []struct{ key, value string }{{"rpc", c.RPC}, {"feed", c.Feed}} {
		if _, _, err := net.SplitHostPort(address.value); err != nil {
			problems = append(problems, fmt.Errorf("%s: %q is not an address (write host:port, such as 127.0.0.1:8545)",
				address.key, address.value))
		}
	}
	if c.ChainID == 0 {
		problems = append(problems, errors.New("chain_id: must not be 0"))
	}
	for _, interval := range []struct {
		key string
		d   time.Duration
	}{{"block_time", c.BlockTime}, {"price_interval", c.PriceInterval}} {
		if interval.d < 10*time.Millisecond || interval.d > time.Minute {
			problems = append(problems, fmt.Errorf("%s: %s is not between 10ms and 1m", interval.key, interval.d))
		}
	}
	if percent, err := c.liquidationPercent(); err != nil || percent < 100 || percent > 200 {
		problems = append(problems, fmt.Errorf("liquidation_ratio: %q is not a number from 1 to 2 with at most two "+
			"decimals", c.LiquidationRatio))
	}
	if c.Contracts != string(contracts.V22B) && c.Contracts != string(contracts.V22C) {
		problems = append(problems, fmt.Errorf("contracts: %q is neither %s nor %s", c.Contracts, contracts.V22B,
			contracts.V22C))
	}
	if c.GasLimit < evmnode.MaxTxGas {
		problems = append(problems, fmt.Errorf("gas_limit: %d is less than a transaction may have, %d", c.GasLimit,
			evmnode.MaxTxGas))
	}
	if c.PaymentLane >= 100 {
		problems = append(problems, fmt.Errorf("payment_lane: %d percent leaves no gas to calls", c.PaymentLane))
	}
	if c.LiquidationBurn > evmnode.MaxTxGas {
		problems = append(problems, fmt.Errorf("liquidation_burn: %d is more than a transaction may have, %d",
			c.LiquidationBurn, evmnode.MaxTxGas))
	}
	if c.ShockEvery != 0 && (c.ShockEvery < 100*time.Millisecond || c.ShockEvery > time.Hour) {
		problems = append(problems, fmt.Errorf("shock_every: %s is neither 0 nor between 100ms and 1h", c.ShockEvery))
	}
	if c.Rate < 0 || c.Rate > 100 {
		problems = append(problems, fmt.Errorf("rate: %d is not between 0 and 100", c.Rate))
	}
	return errors.Join(problems...)
}

func (c Config) liquidationPercent() (int64, error) { return decimal(c.LiquidationRatio).scaled(2) }
