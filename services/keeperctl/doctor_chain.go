package keeperctl

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/services/keeperctl/doctor"
)

// askedHeaders is how many headers an endpoint is asked for at once.
const askedHeaders = 10

// probe is one endpoint, asked by itself; without a client where it cannot be used.
type probe struct {
	client *evm.Client
	fact   doctor.Endpoint
}

// probes are all endpoints, and a client of those that answer for this chain; nil where none does.
type probes struct {
	each  []*probe
	node  *evm.Client
	start *evm.Client // an endpoint that has the state of the start block
}

// dialEach connects to every endpoint by itself, and to all that answer.
func (s *session) dialEach(ctx context.Context) *probes {
	p := &probes{each: make([]*probe, len(s.Chain.URLs))}
	var wait sync.WaitGroup
	for i := range s.Chain.URLs {
		p.each[i] = &probe{}
		wait.Go(func() { p.each[i].dial(ctx, s, i) })
	}
	wait.Wait()
	answered := false
	for _, one := range p.each {
		answered = answered || one.client != nil
	}
	if !answered {
		return p
	}
	// Those that do not answer count as hosts.
	all := s.Chain.Only(func(i int) bool { return p.each[i].fact.Wrong == nil })
	node, err := s.dial(ctx, all)
	if err != nil {
		// Only a private endpoint can be of another chain here.
		p.each = append(p.each, &probe{fact: doctor.Endpoint{Name: "chain.private_urls", Private: true, Wrong: err}})
		if node, err = s.dial(ctx, all.Public()); err != nil {
			return p
		}
	}
	p.node = node
	for _, e := range node.Endpoints() {
		if e.Private {
			fact := doctor.Endpoint{Name: string(e.Source), Private: true}
			if e.LastError != nil && !evm.Refused(e.LastError) {
				fact.Down = e.LastError
			}
			p.each = append(p.each, &probe{fact: fact})
		}
	}
	return p
}

func (s *session) dial(ctx context.Context, cfg evm.Config) (*evm.Client, error) {
	return evm.Dial(ctx, s.Keeper.ChainID, cfg, s.log, evm.NewMetrics(prometheus.NewRegistry()))
}

func (p *probe) dial(ctx context.Context, s *session, at int) {
	p.fact.Name = s.Chain.URLs[at].String()
	client, err := s.dial(ctx, s.Chain.Public().Only(func(i int) bool { return i == at }))
	if err != nil {
		p.fact.Wrong = err
		return
	}
	if p.fact.Down = client.Health(); p.fact.Down != nil {
		client.Close()
		return
	}
	p.client = client
}

func (p *probes) close() {
	for _, one := range p.each {
		if one.client != nil {
			one.client.Close()
		}
	}
	if p.node != nil {
		p.node.Close()
	}
}

// ask puts the questions of the scanner and the sender to every endpoint, and then that of a block they all call final.
func (p *probes) ask(ctx context.Context, s *session) {
	p.visit(func(one *probe) { one.ask(ctx, s) })
	lowest := uint64(0)
	for _, one := range p.each {
		if one.client != nil && one.fact.FinalError == nil && (lowest == 0 || one.fact.Final.Number < lowest) {
			lowest = one.fact.Final.Number
		}
		if one.fact.OldState && p.start == nil {
			p.start = one.client
		}
	}
	if lowest == 0 {
		return
	}
	p.visit(func(one *probe) {
		if hash, err := one.client.HashAt(ctx, lowest); err == nil {
			one.fact.SettledNumber, one.fact.Settled = lowest, hash
		}
	})
}

// visit goes to all endpoints that can be used at the same time.
func (p *probes) visit(do func(*probe)) {
	var wait sync.WaitGroup
	for _, one := range p.each {
		if one.client != nil {
			wait.Go(func() { do(one) })
		}
	}
	wait.Wait()
}

func (p *probe) ask(ctx context.Context, s *session) {
	f := &p.fact
	if f.Final, f.FinalError = p.client.Finalized(ctx); f.FinalError != nil {
		return
	}
	if block, err := p.client.Block(ctx, f.Final.Hash); err != nil {
		f.ReceiptsError = err
	} else {
		_, f.ReceiptsError = p.client.Receipts(ctx, block)
		if kept, err := p.client.PaymentLane(ctx); err == nil {
			f.CallGas = evm.CallGas(block.GasLimit, kept)
		}
	}
	f.StateError = p.state(ctx, s.Venue.DataStore, f.Final.Hash)
	first := f.Final.Number - min(f.Final.Number, askedHeaders-1)
	_, f.BatchError = p.client.Blocks(ctx, first, f.Final.Number)
	if start := s.Scanner.StartBlock; start > 0 && start <= f.Final.Number {
		var block evm.Block
		if block, f.HistoryError = p.client.BlockAt(ctx, start); f.HistoryError == nil {
			_, f.HistoryError = p.client.Receipts(ctx, block)
			f.OldState = p.state(ctx, s.Venue.DataStore, block.Hash) == nil
		}
	}
	p.client.CheckForks(ctx)
	f.Forks, f.Software = p.client.ForksNear(), p.client.Endpoints()[0].Software
	f.PerSecond = p.client.Endpoints()[0].RequestsPerSecond
}

// state is nil where an endpoint executes a call on the state after a block; the contract's answer does not matter.
func (p *probe) state(ctx context.Context, contract chain.Address, block chain.Hash) error {
	_, err := p.client.Call(ctx, contract, nil, block)
	if _, reverted := evm.RevertData(err); reverted {
		return nil
	}
	return err
}

// heads asks all endpoints for their heads at one moment.
func (p *probes) heads(ctx context.Context) {
	p.visit(func(one *probe) {
		head, err := one.client.Head(ctx)
		if err != nil {
			one.fact.Down = err
			return
		}
		one.fact.Head = head
	})
}

func (p *probes) facts() (all []doctor.Endpoint, hosts int) {
	for _, one := range p.each {
		all = append(all, one.fact)
	}
	if p.node != nil {
		hosts = p.node.Hosts()
	}
	return all, hosts
}
