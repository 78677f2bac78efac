package exchange

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"reflect"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/contracts"
)

// Upgrade puts the handlers and the router of a version beside those of a running exchange and gives them their roles.
// Both sets work from then on, on the same requests, orders and positions, until Retire. It returns the deployment with
// the new addresses; the parameters that only the new version reads are set before, from the configuration.
func Upgrade(ctx context.Context, backend Backend, cfg Config, from *Deployment) (*Deployment, error) {
	d, err := resume(ctx, backend, cfg, from)
	if err != nil {
		return nil, fmt.Errorf("upgrading the exchange: %w", err)
	}
	d.out.Version = cfg.Version
	d.handlers()
	for _, m := range d.out.Markets {
		d.fundingParameters(m)
	}
	d.empower(d.out.Contracts)
	if _, err := d.flush(ctx); err != nil {
		return nil, fmt.Errorf("upgrading the exchange: %w", err)
	}
	return d.out, nil
}

// Retire takes their roles from the handlers and the router of a deployment that has been upgraded.
func Retire(ctx context.Context, backend Backend, deployer *ecdsa.PrivateKey, old *Deployment) error {
	d, err := resume(ctx, backend, Config{Deployer: deployer}, old)
	if err != nil {
		return fmt.Errorf("retiring handlers: %w", err)
	}
	for _, handler := range old.Contracts.versioned() {
		d.revoke(handler, "CONTROLLER")
	}
	d.revoke(old.Contracts.ExchangeRouter, "ROUTER_PLUGIN")
	if _, err := d.flush(ctx); err != nil {
		return fmt.Errorf("retiring handlers: %w", err)
	}
	return nil
}

// SetRole gives a role, such as "ORDER_KEEPER", to an account or takes it away; the deployer's key administers roles.
func SetRole(ctx context.Context, backend Backend, deployer *ecdsa.PrivateKey, on *Deployment, account common.Address,
	role string, holds bool) error {
	d, err := resume(ctx, backend, Config{Deployer: deployer}, on)
	if err != nil {
		return fmt.Errorf("changing the role %s of %s: %w", role, account, err)
	}
	if holds {
		d.grant(account, role)
	} else {
		d.revoke(account, role)
	}
	if _, err := d.flush(ctx); err != nil {
		return fmt.Errorf("changing the role %s of %s: %w", role, account, err)
	}
	return nil
}

// Announce emits an event of administration under a name of one's own, which no keeper knows.
func Announce(ctx context.Context, backend Backend, deployer *ecdsa.PrivateKey, on *Deployment, name string) error {
	d, err := resume(ctx, backend, Config{Deployer: deployer}, on)
	if err != nil {
		return fmt.Errorf("announcing %s: %w", name, err)
	}
	items := contracts.Get(contracts.EventEmitter).ABI.Methods["emitEventLog"].Inputs[1].Type.GetType()
	d.grant(d.self, "CONTROLLER")
	d.invoke(contracts.EventEmitter, on.Contracts.EventEmitter, gasToConfigure, "emitEventLog", name,
		reflect.New(items).Elem().Interface())
	d.revoke(d.self, "CONTROLLER")
	if _, err := d.flush(ctx); err != nil {
		return fmt.Errorf("announcing %s: %w", name, err)
	}
	return nil
}

// resume is the deployer of an exchange that stands, after its last transaction.
func resume(ctx context.Context, backend Backend, cfg Config, on *Deployment) (*deployer, error) {
	s, err := newSender(ctx, backend)
	if err != nil {
		return nil, err
	}
	out := *on
	out.Markets, out.Glvs = slices.Clone(on.Markets), slices.Clone(on.Glvs)
	d := &deployer{sender: s, cfg: cfg, self: addressOf(cfg.Deployer), libraries: map[contracts.Name]common.Address{},
		out: &out}
	if d.nonce, err = backend.PendingNonceAt(ctx, d.self); err != nil {
		return nil, fmt.Errorf("reading the deployer's nonce: %w", err)
	}
	return d, nil
}

// fundingParameters are the bounds of the funding factor: of each side from v2.2c on, of the market before.
func (d *deployer) fundingParameters(m Market) {
	p := d.cfg.Parameters
	for _, bound := range []struct {
		name  string
		value *big.Int
	}{
		{"MIN_FUNDING_FACTOR_PER_SECOND", p.MinFundingFactorPerSecond},
		{"MAX_FUNDING_FACTOR_PER_SECOND", p.MaxFundingFactorPerSecond},
	} {
		if d.cfg.Version == contracts.V22B {
			d.set(bound.name, bound.value, m.Address)
			continue
		}
		d.set(bound.name, bound.value, m.Address, true)
		d.set(bound.name, bound.value, m.Address, false)
	}
	if d.cfg.Version != contracts.V22B {
		d.set("MIN_FUNDING_INCREASE_RATE_PER_SECOND", p.MinFundingIncreaseRatePerSecond, m.Address)
	}
}
