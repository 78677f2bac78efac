package hammer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
)

// planner says jobs as a planner does: those that are found, and every few seconds again all that are not done.
//
// The jobs bring the deleveraging state of markets up to date, each that of another market. The exchange has never said
// anything about these markets, so that every one of them is pending for ever as far as the state goes: only the
// sender's own rows keep it from doing one twice.
type planner struct {
	*site
	jobs   int
	window int // most that are said and not done

	published, seen int
	live            map[int]bool
	again           time.Time
}

func (s *site) planner(jobs int) *planner {
	return &planner{site: s, jobs: jobs, window: 600, live: map[int]bool{}}
}

// publishJobs publishes jobs until all are done, and returns what is missing, for await.
func (p *planner) publishJobs(ctx context.Context) (missing string) {
	for _, id := range p.node.executed(p.seen) {
		p.seen++
		delete(p.live, id)
	}
	if p.late() && p.published < p.jobs {
		p.t.Errorf("the time is up: %d of %d jobs were published", p.published, p.jobs)
		p.jobs = p.published
	}
	if p.published == p.jobs && len(p.live) == 0 {
		return ""
	}
	missing = fmt.Sprintf("%d of %d jobs published, %d of them not done", p.published, p.jobs, len(p.live))
	var now []int
	for allowed := p.allowed(p.jobs); p.published < allowed && len(p.live) < p.window; p.published++ {
		p.live[p.published] = true
		now = append(now, p.published)
	}
	if time.Since(p.again) > 5*time.Second {
		p.again, now = time.Now(), slices.Sorted(maps.Keys(p.live))
	}
	if err := p.publish(ctx, now); err != nil {
		p.t.Fatal(err)
	}
	return missing
}

func (p *planner) publish(ctx context.Context, ids []int) error {
	records, err := p.records(ctx, ids)
	if err != nil || len(records) == 0 {
		return err
	}
	return p.say(ctx, records)
}

// records are the jobs of some numbers as they are found now.
func (p *planner) records(ctx context.Context, ids []int) (records []bus.Record, err error) {
	progress, err := p.db.Progress(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		j := jobOfMarket(id, p.signer,
			job.Evidence{Block: progress.Watermark, Generation: uint32(progress.Generation)})
		record, err := wire.Encode(j.Signer[:], wire.Job{Job: j}, 0, 0)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// say gives jobs to the topic.
func (p *planner) say(ctx context.Context, records []bus.Record) error {
	_, err := p.client.Producer(wire.JobTopic(p.keeper.ChainID)).
		Produce(ctx, wire.SignerPartition(p.signer, p.keeper.JobPartitions), records)
	return err
}

// jobOfMarket is the job of a number, as it is found.
func jobOfMarket(id int, signer chain.Address, found job.Evidence) job.Job {
	market := marketOf(id)
	return job.Job{
		ID: job.AdlStateID(market, true, 0), Kind: job.AdlState, Key: market.Hash(), Market: market, IsLong: true,
		DueSinceMs: found.Block.TimeMs, Class: job.ClassAdl,
		Signer: signer, Evidence: found,
	}
}
