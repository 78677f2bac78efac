package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/operator/whynot"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/sources"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/services/keeperctl/doctor"
)

// sourcePatience is how long a source may take to show a report of every token: the first exchange of keys, and a push.
const sourcePatience = 8 * time.Second

// askSources runs every source of prices until it has shown all that is asked of it, or its time is over.
func (s *session) askSources(ctx context.Context, f *doctor.Facts, node *evm.Client) {
	cfg := s.Scanner.Price
	var caller source.Caller
	if node != nil {
		caller = node
	}
	tables := map[string]source.Table{}
	for _, t := range cfg.Sources {
		if t.Kind == "aggregator" && node == nil {
			continue // it is read from the chain, which is away
		}
		tables[t.Name] = t
	}
	members, closeIdle := sources.Open(cfg, caller, chain.Address{}) // what the services say is looked at
	defer closeIdle()
	ctx, cancel := context.WithTimeout(ctx, sourcePatience)
	defer cancel()
	f.Sources = make([]doctor.Source, len(members))
	var wait sync.WaitGroup
	for i, m := range members {
		one := &f.Sources[i]
		*one = doctor.Source{Name: m.Name, MaxAge: m.MaxAge, Reports: map[chain.Address]doctor.Report{},
			Decimals: map[chain.Address]uint8{}}
		for _, t := range tables[m.Name].Tokens {
			one.Decimals[t.Address] = t.Decimals
		}
		if _, known := tables[m.Name]; !known && len(cfg.Sources) > 0 {
			one.Error = errors.New("the chain cannot be asked")
			continue
		}
		wait.Go(func() { listen(ctx, m, wantedOf(m, f.Venue), one) })
	}
	wait.Wait()
}

// wantedOf are the tokens a source is expected to show: those it is configured with, or those of the exchange's
// markets.
func wantedOf(m price.Member, v *doctor.Venue) map[chain.Address]bool {
	wanted := map[chain.Address]bool{}
	for _, token := range m.Tokens {
		wanted[token] = true
	}
	if len(m.Tokens) == 0 && v != nil {
		for _, t := range v.Tokens {
			wanted[t.Address] = true
		}
	}
	return wanted
}

// listen takes the newest report of each token until all that are wanted are there.
func listen(ctx context.Context, m price.Member, wanted map[chain.Address]bool, into *doctor.Source) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var mutex sync.Mutex
	take := func(reports []price.Report, unreadable []error) {
		mutex.Lock()
		defer mutex.Unlock()
		for _, r := range reports {
			delete(wanted, r.Token)
			if into.Reports[r.Token].TimeMs <= r.PriceMs() {
				into.Reports[r.Token] = doctor.Report{Provider: r.Provider, Min: r.Min, Max: r.Max, TimeMs: r.PriceMs()}
			}
		}
		if len(unreadable) > 0 {
			into.Unreadable = unreadable[0]
		}
		if len(wanted) == 0 && len(into.Reports) > 0 {
			enough()
		}
	}
	var last error
	tries := retry.New(retry.Policy{Initial: 200 * time.Millisecond, Max: 2 * time.Second})
	for tries.Next(ctx) {
		if err := m.Source.Run(ctx, take); err != nil && ctx.Err() == nil {
			last = err
			tries.Failed(err)
		}
	}
	mutex.Lock()
	defer mutex.Unlock()
	if into.Error = last; last == nil && len(into.Reports) == 0 {
		into.Error = fmt.Errorf("it showed nothing within %s", sourcePatience)
	}
}

// lookAtReports notes the newest report of each token that planner and sender have.
func (s *session) lookAtReports(ctx context.Context, f *doctor.Facts) {
	if f.Topics == nil || f.Topics.Error != nil || f.Venue == nil {
		return
	}
	client, err := s.kafka()
	if err != nil {
		return // that the brokers are not there is found elsewhere
	}
	board, err := whynot.Reports(ctx, client, s.Keeper.ChainID, due.PriceMaxAge)
	if err != nil {
		return // that the topic is missing is found elsewhere
	}
	f.Topics.Reports = map[chain.Address]uint64{}
	for _, t := range f.Venue.Tokens {
		if r, has := board.Latest(t.Address); has {
			f.Topics.Reports[t.Address] = r.TimeMs
			if why := r.Stuck(); why != "" {
				f.Topics.Stuck = append(f.Topics.Stuck, why)
			}
		}
	}
	maps.DeleteFunc(f.Topics.Reports, func(_ chain.Address, ms uint64) bool { return ms == 0 })
}
