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
	found, err := gmx.Locate(ctx, p.node, s.Venue.DataStore, f.Settings.Signers...)
	v := &doctor.Venue{DataStore: s.Venue.DataStore, Roles: found.RoleStore, MarketsAtStart: -1,
		Providers: map[chain.Address]bool{}}
	if err != nil && !gmx.NoVenue(err) {
		f.VenueError = err
		return
	}
	f.Venue = v
	if err != nil { // it is no DataStore, and has no markets
		return
	}
	v.Missing = missing(found, f.Settings)
	if configured := s.Venue.EventEmitter; !configured.IsZero() && !slices.Contains(found.EventEmitters(), configured) {
		v.Emitter, v.Emitters = configured, found.EventEmitters()
	}
	for i := range f.Signers {
		f.Signers[i].Roles = map[string]bool{}
		for _, role := range found.Held[f.Signers[i].Address] {
			f.Signers[i].Roles[role] = true
		}
	}
	at := contract.Asker{Node: p.node, Block: head.Hash}
	if err := markets(ctx, at, v); err != nil {
		f.Venue, f.VenueError = nil, err
		return
	}
	if p.start != nil && s.Scanner.StartBlock > 0 {
		v.MarketsAtStart = marketsBefore(ctx, p, s.Scanner.StartBlock, s.Venue.DataStore)
	}
}

// missing are the kinds of job that the keeper needs and that no contract executes.
func missing(v gmx.Venue, s doctor.Settings) (kinds []string) {
	needed := []job.Kind{job.Order, job.Liquidation, job.Deposit, job.Withdrawal}
	if s.Adl {
		needed = append(needed, job.Adl)
	}
	for _, kind := range needed {
		if v.Demand(kind) != nil {
			kinds = append(kinds, string(kind))
		}
	}
	return kinds
}

func markets(ctx context.Context, at gmx.Asker, v *doctor.Venue) (err error) {
	if v.Markets, err = gmx.Markets(ctx, at, v.DataStore); err != nil {
		return err
	}
	tokens, err := gmx.MarketTokens(ctx, at, v.DataStore)
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
	if f.Venue == nil || f.Venue.Roles.IsZero() {
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
				f.Venue.DataStore, report.Provider)
			if err == nil {
				f.Venue.Providers[report.Provider] = takes
			}
		}
	}
}
