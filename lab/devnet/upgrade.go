package devnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/exchange"
)

// Upgrade puts the handlers and the router of a version beside those that run, and the traders go on through the new
// ones. The old ones keep their roles until Retire: keepers may execute with either. It returns the new deployment.
func (d *Devnet) Upgrade(ctx context.Context, to contracts.Version) (*exchange.Deployment, error) {
	d.upgrade.Lock()
	defer d.upgrade.Unlock()
	if d.former != nil {
		return nil, errors.New("the handlers of before the last upgrade have to be retired first")
	}
	cfg := d.cfg
	cfg.Contracts = string(to)
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("upgrading the exchange: %w", err)
	}
	venue, err := d.venue(cfg)
	if err != nil {
		return nil, err
	}
	before := d.Deployment()
	after, err := exchange.Upgrade(ctx, d.chain, venue, before)
	if err != nil {
		return nil, err
	}
	record := d.Record()
	record.Deployment = *after
	d.record.Store(&record)
	d.former = before
	if d.users != nil {
		d.users.Use(after)
	}
	return after, nil
}

// Retire takes their roles from the handlers and the router of before the last upgrade.
func (d *Devnet) Retire(ctx context.Context) error {
	d.upgrade.Lock()
	defer d.upgrade.Unlock()
	if d.former == nil {
		return errors.New("there is no upgrade whose old handlers still have their roles")
	}
	if err := exchange.Retire(ctx, d.chain, d.cast.deployer.Key, d.former); err != nil {
		return err
	}
	d.former = nil
	return nil
}

// SetRole gives one of the keepers' roles to an account or takes it away.
func (d *Devnet) SetRole(ctx context.Context, account common.Address, role string, holds bool) error {
	if !slices.Contains(exchange.KeeperRoles, role) {
		return fmt.Errorf("%q is no role of keepers: these are %v", role, exchange.KeeperRoles)
	}
	d.upgrade.Lock()
	defer d.upgrade.Unlock()
	return exchange.SetRole(ctx, d.chain, d.cast.deployer.Key, d.Deployment(), account, role, holds)
}

// Announce emits an event of administration that keepers do not know.
func (d *Devnet) Announce(ctx context.Context, name string) error {
	d.upgrade.Lock()
	defer d.upgrade.Unlock()
	return exchange.Announce(ctx, d.chain, d.cast.deployer.Key, d.Deployment(), name)
}

// Announce is devnet_announce {name}.
func (c control) Announce(ctx context.Context, args struct {
	Name string `json:"name"`
}) (bool, error) {
	return true, c.d.Announce(ctx, args.Name)
}

// Upgrade is devnet_upgrade {contracts}, an upgrade of the exchange under way. First the new handlers and the new
// router stand beside the old ones, all with their roles; the answer is the new deployment. RoleStore lists both sets
// as CONTROLLER. Then devnet_retire takes the roles of the old ones. "devnet upgrade" and "devnet retire" do the
// same from a shell, and /v1/deployment has the new addresses from then on.
func (c control) Upgrade(ctx context.Context, args *struct {
	Contracts contracts.Version `json:"contracts"` // Default v2.2c.
}) (*exchange.Deployment, error) {
	if args == nil {
		return c.d.Upgrade(ctx, contracts.V22C)
	}
	return c.d.Upgrade(ctx, args.Contracts)
}

// Retire is devnet_retire, the end of an upgrade.
func (c control) Retire(ctx context.Context) (bool, error) { return true, c.d.Retire(ctx) }

// Role is devnet_role {account, role, holds}.
func (c control) Role(ctx context.Context, args struct {
	Account common.Address `json:"account"`
	Role    string         `json:"role"`  // Default ORDER_KEEPER.
	Holds   *bool          `json:"holds"` // Default true.
}) (bool, error) {
	return true, c.d.SetRole(ctx, args.Account, cmp.Or(args.Role, "ORDER_KEEPER"), args.Holds == nil || *args.Holds)
}
