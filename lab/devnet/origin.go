package devnet

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/devnet/exchange"
)

// Origin is a chain with the exchange on it, as a devnet has it when it starts. Who needs several devnets deploys once:
// each of them has a chain of its own that begins with the same blocks. These keep the time of the deployment.
type Origin struct {
	chain      *evmnode.Image
	deployment exchange.Deployment
	foundation Foundation
}

// Foundation is what of a configuration the first blocks depend on.
type Foundation struct {
	ChainID, GasLimit, LiquidationBurn uint64
	LiquidationRatio, Contracts        string
}

// Foundation of a devnet with this configuration.
func (c Config) Foundation() Foundation {
	return Foundation{ChainID: c.ChainID, GasLimit: c.GasLimit, LiquidationBurn: c.LiquidationBurn,
		LiquidationRatio: c.LiquidationRatio, Contracts: c.Contracts}
}

// Deploy makes the origin of devnets with this configuration, or another one that has the same foundation.
func Deploy(ctx context.Context, cfg Config) (*Origin, error) {
	cfg.RPC, cfg.Dir = DefaultConfig().RPC, ""
	d, err := newDevnet(cfg, nil)
	if err != nil {
		return nil, err
	}
	o, err := d.origin(ctx, cfg)
	return o, errors.Join(err, d.discard())
}

func (d *Devnet) origin(ctx context.Context, cfg Config) (*Origin, error) {
	venue, err := d.venue(cfg)
	if err != nil {
		return nil, err
	}
	deployment, err := d.deploy(ctx, venue)
	if err != nil {
		return nil, err
	}
	chain, err := d.node.Image()
	return &Origin{chain: chain, deployment: *deployment, foundation: cfg.Foundation()}, err
}

// Start is what the function of this name is, without a deployment. The configuration has to have the origin's
// foundation.
func (o *Origin) Start(ctx context.Context, cfg Config, log zerolog.Logger) (*Devnet, error) {
	if f := cfg.Foundation(); f != o.foundation {
		return nil, fmt.Errorf("starting a devnet of %+v where one of %+v was deployed", f, o.foundation)
	}
	return bringUp(ctx, cfg, log, o)
}

// exchange is nil where none has been deployed.
func (o *Origin) exchange() *exchange.Deployment {
	if o == nil {
		return nil
	}
	return &o.deployment
}
