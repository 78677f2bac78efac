package keeperctl

import (
	"context"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/contract"
	"perpkeeper/services/keeperctl/doctor"
)

// lookAtContracts asks the exchange's contracts about themselves, and about the signers. Where the chain cannot be
// asked nothing is known of them, which is no fault of theirs.
func (s *session) lookAtContracts(ctx context.Context, f *doctor.Facts, p *probes) {
	f.Signers = make([]doctor.Signer, 0, len(f.Settings.Signers))
	for _, signer := range f.Settings.Signers {
		f.Signers = append(f.Signers, doctor.Signer{Address: signer})
	}
	if p.node == nil {
		return
	}
	for i := range f.Signers {
		if wei, err := p.node.Balance(ctx, f.Signers[i].Address); err == nil {
			f.Signers[i].Balance = &wei
		}
	}
	head, err := p.node.Head(ctx)
	if err != nil {
		f.VenueError = err
		return
	}
	at := contract.Asker{Node: p.node, Block: head.Hash}
	v := &doctor.Venue{MarketsAtStart: -1, Missing: missing(s.Venue, f.Settings), Providers: map[chain.Address]bool{}}
	if f.VenueError = s.inspect(ctx, at, v); f.VenueError != nil {
		return
	}
	f.Venue = v
	for i := range f.Signers {
		f.Signers[i].Roles = rolesOf(ctx, at, v.DataStore.Roles, f.Signers[i].Address)
	}
	if p.start != nil && s.Scanner.StartBlock > 0 {
		v.MarketsAtStart = marketsBefore(ctx, p, s.Scanner.StartBlock, s.Venue.DataStore)
	}
}

// missing are the settings of handlers that the keeper needs and that name none.
func missing(c gmx.Config, s doctor.Settings) (settings []string) {
	kinds := map[string]job.Kind{"order_handler": job.Order, "liquidation_handler": job.Liquidation,
		"deposit_handler": job.Deposit, "withdrawal_handler": job.Withdrawal}
	if s.Adl {
		kinds["adl_handler"] = job.Adl
	}
	for _, named := range c.Settings() {
		if kind, needed := kinds[named.Name]; needed && c.Demand(kind) != nil {
			settings = append(settings, named.Name)
		}
	}
	return settings
}

// inspect fills in what contracts and markets there are.
func (s *session) inspect(ctx context.Context, at gmx.Asker, v *doctor.Venue) (err error) {
	handlers := s.Venue.Handlers()
	for _, named := range s.Venue.Settings() {
		c := doctor.Contract{Setting: named.Name, Address: named.Address}
		if !named.Address.IsZero() {
			of, err := gmx.Inspect(ctx, at, named.Address)
			if err != nil {
				return err
			}
			c.DataStore, c.EventEmitter, c.Roles = of.DataStore, of.EventEmitter, of.RoleStore
		}
		switch {
		case named.Name == "data_store":
			v.DataStore = c
		case named.Name == "event_emitter":
			v.EventEmitter = c
		case slices.Contains(handlers, named.Address):
			v.Handlers = append(v.Handlers, c)
		}
	}
	for i := range v.Handlers {
		h := &v.Handlers[i]
		if h.Executes, err = gmx.Executes(ctx, at, h.Address, h.Setting); err != nil {
			return err
		}
		if roles := v.DataStore.Roles; !roles.IsZero() {
			if h.Controller, err = gmx.HasRole(ctx, at, roles, h.Address, "CONTROLLER"); err != nil {
				return err
			}
		}
	}
	if v.DataStore.Roles.IsZero() {
		return nil // it is no DataStore, and has no markets
	}
	return markets(ctx, at, v)
}

func markets(ctx context.Context, at gmx.Asker, v *doctor.Venue) (err error) {
	if v.Markets, err = gmx.Markets(ctx, at, v.DataStore.Address); err != nil {
		return err
	}
	tokens, err := gmx.MarketTokens(ctx, at, v.DataStore.Address)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		decimals, known, err := gmx.Decimals(ctx, at, token)
		if err != nil {
			return fmt.Errorf("asking token %s for its decimals: %w", token, err)
		}
		if !known {
			decimals = -1
		}
		v.Tokens = append(v.Tokens, doctor.Token{Address: token, Decimals: decimals})
	}
	return nil
}

// keeperRoles are those a keeper's signers may need.
var keeperRoles = []string{"ORDER_KEEPER", "LIQUIDATION_KEEPER", "ADL_KEEPER", "FROZEN_ORDER_KEEPER"}

// rolesOf is nil where the RoleStore cannot be asked.
func rolesOf(ctx context.Context, at gmx.Asker, roles, account chain.Address) map[string]bool {
	held := map[string]bool{}
	for _, role := range keeperRoles {
		has, err := gmx.HasRole(ctx, at, roles, account, role)
		if err != nil {
			return nil
		}
		held[role] = has
	}
	return held
}

// marketsBefore is how many markets there were when the record begins; -1 where that is not known: before the
// DataStore was made there is nobody to ask.
func marketsBefore(ctx context.Context, p *probes, start uint64, store chain.Address) int {
	hash, err := p.start.HashAt(ctx, start-1)
	if err != nil {
		return -1
	}
	count, err := gmx.Markets(ctx, contract.Asker{Node: p.start, Block: hash}, store)
	if err != nil {
		return -1
	}
	return count
}

// lookAtProviders asks whether the exchange takes reports from the providers that the sources name.
func (s *session) lookAtProviders(ctx context.Context, f *doctor.Facts, p *probes) {
	if f.Venue == nil || f.Venue.DataStore.Roles.IsZero() {
		return
	}
	head, err := p.node.Head(ctx)
	if err != nil {
		return
	}
	for _, source := range f.Sources {
		for _, report := range source.Reports {
			if _, asked := f.Venue.Providers[report.Provider]; asked {
				continue
			}
			takes, err := gmx.TakesReportsFrom(ctx, contract.Asker{Node: p.node, Block: head.Hash},
				f.Venue.DataStore.Address,
				report.Provider)
			if err == nil {
				f.Venue.Providers[report.Provider] = takes
			}
		}
	}
}
