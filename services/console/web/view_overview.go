package web

import (
	"context"
	"errors"
	"html/template"
	"net/url"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
)

var errNoNode = errors.New("no endpoint of the chain is configured (chain.urls)")

// overviewView is the first page: is it well, what is under way, who has acted.
type overviewView struct {
	Place    string
	Findings []status.Finding // what somebody has to look at first
	Wrong    int
	Lanes    []lane
	Ended    []endedCount
	Earned   chain.Uint
	Spent    chain.Uint
	Keepers  []keeperSeen
	Problems []string // of parts that could not be read
	Road     []stage
	Executed template.HTML // how many jobs a minute, by whom
	Taken    uint64        // of these, by a tier that is not the first
}

type lane struct {
	Name             string
	Queued, InFlight int
}

type endedCount struct {
	Outcome job.Outcome
	Count   int
}

// keeperSeen is what the chain shows of one keeper's signer.
type keeperSeen struct {
	Tier   int
	Ours   bool
	Signer chain.Address
	pg.Sent
	Ago time.Duration
}

const seenWithin = time.Hour

func (c *console) overview(ctx context.Context, _ url.Values) (any, error) {
	p := c.past()
	v := overviewView{Place: status.Place(c.Tier), Road: p.road()}
	v.Executed, v.Taken = c.executedChart(p)
	v.Findings = status.Look(ctx, c.sources())
	v.Wrong = status.WrongFirst(v.Findings)
	recent, err := c.DB.Recent(ctx, seenWithin)
	if err != nil {
		v.Problems = append(v.Problems, err.Error())
		return v, nil
	}
	v.Earned, v.Spent = recent.Earned, recent.Spent
	for _, l := range status.Lanes {
		v.Lanes = append(v.Lanes, lane{l.Name, recent.Queued[l.Class], recent.InFlight[l.Class]})
	}
	for outcome, count := range recent.Ended {
		v.Ended = append(v.Ended, endedCount{outcome, count})
	}
	slices.SortFunc(v.Ended, func(a, b endedCount) int { return b.Count - a.Count })
	if v.Keepers, err = c.keepers(ctx); err != nil {
		v.Problems = append(v.Problems, err.Error())
	}
	return v, nil
}

// sources are those that keeperctl status looks at.
func (c *console) sources() []status.Source {
	return status.Keeper{ChainID: c.Keeper.ChainID, Processes: c.Processes,
		Node: func(context.Context) (status.Node, error) {
			if c.Node == nil {
				return nil, errNoNode
			}
			return c.Node, nil
		},
		DB:    func(context.Context) (*pg.DB, error) { return c.DB, nil },
		Kafka: func() (*bus.Client, error) { return c.Kafka, nil }}.Sources()
}

// keepers are the signers of all tiers, as the chain shows them.
func (c *console) keepers(ctx context.Context) ([]keeperSeen, error) {
	own, err := txstore.NewSigners(c.DB).List(ctx)
	if err != nil {
		return nil, err
	}
	var all []keeperSeen
	add := func(tier int, ours bool, signer chain.Address) {
		if !slices.ContainsFunc(all, func(k keeperSeen) bool { return k.Signer == signer }) {
			all = append(all, keeperSeen{Tier: tier, Ours: ours, Signer: signer})
		}
	}
	for _, s := range own {
		add(c.Tier.Priority, true, s.Signer)
	}
	for _, s := range c.Signers {
		add(c.Tier.Priority, true, s)
	}
	for _, p := range c.Tier.Peers {
		for _, s := range p.Signers {
			add(p.Tier, false, s)
		}
	}
	asked := make([]chain.Address, len(all))
	for i := range all {
		asked[i] = all[i].Signer
	}
	sent, err := c.DB.SentSince(ctx, asked, c.Now().Add(-seenWithin), 1000)
	if err != nil {
		return nil, err
	}
	for i, k := range all {
		if all[i].Sent = sent[k.Signer]; !all[i].Last.IsZero() {
			all[i].Ago = c.Now().Sub(all[i].Last)
		}
	}
	slices.SortStableFunc(all, func(a, b keeperSeen) int { return a.Tier - b.Tier })
	return all, nil
}
