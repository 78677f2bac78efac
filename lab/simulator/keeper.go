package simulator

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/lab/simulator/fakechain"
	"perpkeeper/lab/simulator/ledger"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/services/planner"
	"perpkeeper/services/sender"
)

// keeper is one complete keeper: what survives it (databases, topics), its view of the chain, and, while it is up, its
// planner and its sender.
type keeper struct {
	sim    *simulation
	tier   int
	key    fakechain.Signer
	lags   lags
	faults map[FaultKind]activeFault

	ledger   *ledger.Ledger
	endpoint *fakechain.Endpoint
	state    *fakechain.Derived

	// The topics: which jobs and blocks were published, which reports came.
	jobs     []publishedJob
	jobsRead int // how many of the jobs were read
	blocks   []chain.BlockRef
	reports  []price.Report

	life    int // raised when it is killed: events of an earlier life do not happen
	planner *planner.Stepper
	sender  *sender.Stepper
	txs     txLog
	log     *logCapture
	head    chain.BlockRef
	alarm   time.Duration // when the next pass without a cause is scheduled
	late    time.Duration // until when the state catches up after a start
	again   bool          // a planner's pass that failed is scheduled again
}

// publishedJob is a job on the job topic.
type publishedJob struct {
	at  time.Duration
	job job.Job
}

// lags are how long things take to reach a keeper. They stay the same for a play.
type lags struct{ head, topic, state, job, report time.Duration }

// activeFault is a fault that has begun and not ended.
type activeFault struct {
	count int
	since time.Duration
	by    time.Duration
}

// catchUp is how many times faster than the chain a keeper that was away reads what it has missed.
const catchUp = 200

func newKeeper(s *simulation, n int) *keeper {
	random := rand.New(rand.NewPCG(s.seed, uint64(n))) //nolint:gosec // a play is to be repeated
	between := func(from, to int) time.Duration {
		return time.Duration(from+random.IntN(to-from)) * time.Millisecond
	}
	k := &keeper{
		sim: s, tier: n, key: fakechain.Signer{Account: accountOf(n)}, faults: map[FaultKind]activeFault{},
		ledger: ledger.New(s.now), endpoint: s.chain.Endpoint(),
		lags: lags{head: between(50, 250), topic: between(5, 30), state: between(30, 120), job: between(2, 10),
			report: between(100, 400)},
	}
	k.state = k.endpoint.Derived()
	return k
}

// clock is the machine's, which may be wrong.
func (k *keeper) clock() time.Time { return k.sim.now().Add(k.faults[ClockOff].by) }

func (k *keeper) up() bool { return k.sender != nil }

// start starts planner and sender anew, as after a kill: with what databases and topics hold.
func (k *keeper) start() {
	k.life++
	k.log, k.txs.signed = &logCapture{keeper: k}, map[chain.Hash]sentTx{}
	if err := k.assemble(); err != nil {
		k.planner, k.sender = nil, nil
		life := k.life
		k.sim.events.after(time.Second, func() {
			if k.life == life && k.faults[Down].count == 0 {
				k.start()
			}
		})
		return
	}
	k.head, k.alarm, k.again = chain.BlockRef{}, 0, false
	k.replayTopics()
	k.event(0, k.readHead)
	k.event(k.lags.topic, k.publish)
	k.event(k.lags.state, k.reload)
	k.event(k.lags.job, k.readJobs)
	k.event(sweepInterval, k.sweep)
}

const sweepInterval = 10 * time.Second

// assemble makes planner and sender.
func (k *keeper) assemble() (err error) {
	log := k.log.logger()
	pc := planner.DefaultConfig()
	pc.Keeper.Signers = []chain.Address{k.key.Account}
	k.planner = planner.NewStepper(pc, log, planner.NewMetrics(prometheus.NewRegistry()), k.state, k.publishJobs)
	k.planner.Assign([]int{0})
	k.sender, err = sender.NewStepper(context.Background(), k.config(), sender.Parts{
		Venue: contracts, Log: log, Metrics: sender.NewMetrics(prometheus.NewRegistry()), Owner: k.owner(),
		Keys:  []signer.Signer{recordingSigner{k}},
		Node:  recordingNode{k.endpoint, k},
		State: k.state, Leases: k.ledger, Nonces: k.ledger, Intents: k.ledger, Publish: k.recordResults, Clock: k.clock,
		Steady: k.sim.now,
	})
	return err
}

// owner is a start of the process: another one each time, and the same in every play of a seed.
func (k *keeper) owner() lease.Owner {
	id := chain.Keccak256(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte("owner"), uint64(k.tier)),
		uint64(k.life)))
	return lease.Owner{ID: uuid.UUID(id[:16]), Label: tierName(k.tier)}
}

// config is that of a keeper as it is delivered, with the scenario's policy.
func (k *keeper) config() sender.Config {
	s := k.sim.scenario
	cfg := sender.DefaultConfig()
	cfg.Tier.Enabled, cfg.Tier.Priority, cfg.Tier.Tiers = true, k.tier, s.Keepers
	cfg.Tier.Policy = s.Policy
	for n := 1; n <= s.Keepers; n++ {
		if n != k.tier {
			cfg.Tier.Peers = append(cfg.Tier.Peers, tier.Peer{Tier: n, Signers: []chain.Address{accountOf(n)}})
		}
	}
	return cfg
}

// event schedules something that happens to the keeper in its present life. The sender then does what is due.
func (k *keeper) event(wait time.Duration, do func()) {
	life := k.life
	k.sim.events.after(wait, func() {
		if k.life != life || !k.up() {
			return
		}
		k.applyFaults()
		do()
		k.pass()
		k.flush()
	})
}

// pass lets the sender do what is due, and schedules its next pass.
func (k *keeper) pass() {
	rest := max(k.sender.Pass(context.Background()), time.Millisecond)
	k.log.noteReadiness(k.sender.Trouble(context.Background()))
	at := k.sim.events.now + rest
	if k.alarm > k.sim.events.now && k.alarm <= at {
		return
	}
	k.alarm = at
	k.event(rest, func() {})
}

// mined lets the newest block reach the keeper, by and by.
func (k *keeper) mined() {
	lag := k.headLag()
	k.event(lag, k.readHead)
	k.event(lag+k.lags.topic, k.publish)
	k.event(lag+k.stateLag(), k.reload)
}

// readHead takes in the newest block that the endpoint shows.
func (k *keeper) readHead() {
	head, err := k.endpoint.Head(context.Background())
	if err == nil && head.Hash != k.head.Hash {
		k.head = head
		k.sender.Head(head)
	}
}

// publish writes the blocks up to the newest to the log topic, and lets the sender read them.
func (k *keeper) publish() {
	head, err := k.endpoint.Head(context.Background())
	if err != nil {
		return
	}
	var last chain.Hash
	if n := len(k.blocks); n > 0 {
		last = k.blocks[n-1].Hash
	}
	_, entered := k.sim.chain.Path(last, head.Hash)
	for i, ref := range entered {
		k.blocks = append(k.blocks, ref)
		k.sender.Executed(ref, k.sim.chain.Ended(ref.Hash), i < len(entered)-1)
	}
}

// reload has the planner take in the state.
func (k *keeper) reload() { k.plan(k.planner.Reload) }

// sweep has the planner publish every due job again.
func (k *keeper) sweep() {
	next := sweepInterval
	k.plan(func(ctx context.Context) (err error) {
		next, err = k.planner.Sweep(ctx)
		return err
	})
	k.event(next, k.sweep)
}

// plan makes a planner's pass. One that fails is followed by another, as in the planner's own loop.
func (k *keeper) plan(pass func(context.Context) error) {
	if pass(context.Background()) == nil || k.again {
		return
	}
	k.again = true
	k.event(500*time.Millisecond, func() {
		k.again = false
		k.reload()
	})
}

// reported lets price reports reach the keeper.
func (k *keeper) reported(reports []price.Report) {
	k.event(k.lags.report, func() {
		k.reports = append(k.reports, reports...)
		for _, r := range reports {
			k.planner.Report(r)
			k.sender.Report(r)
		}
		k.plan(k.planner.Tick)
	})
}

// publishJobs writes jobs to the job topic.
func (k *keeper) publishJobs(_ context.Context, jobs []job.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	for _, j := range jobs {
		k.jobs = append(k.jobs, publishedJob{k.sim.events.now, j})
	}
	k.event(k.lags.job, k.readJobs)
	return nil
}

// readJobs reads the job topic.
func (k *keeper) readJobs() {
	for k.jobsRead < len(k.jobs) {
		if err := k.sender.Job(context.Background(), k.jobs[k.jobsRead].job); err != nil {
			k.event(time.Second, k.readJobs)
			return
		}
		k.jobsRead++
	}
}

// replayTopics reads the topics back as far as a process does when it starts.
func (k *keeper) replayTopics() {
	const evidencePeriod = 15 * time.Minute // how far back a sender reads the evidence
	now := k.sim.events.now
	k.jobsRead = len(k.jobs)
	for k.jobsRead > 0 && k.jobs[k.jobsRead-1].at >= k.jobs[len(k.jobs)-1].at-k.config().Sender.MaxJobAge {
		k.jobsRead--
	}
	for _, s := range k.jobs {
		if s.at >= now-evidencePeriod {
			k.sender.PastJob(s.job)
		}
	}
	for i, ref := range k.blocks {
		if since(ref.TimeMs) >= now-evidencePeriod {
			k.sender.Executed(ref, k.sim.chain.Ended(ref.Hash), i < len(k.blocks)-1)
		}
	}
	for _, r := range k.reports {
		if since(r.TimeMs) >= now-price.Window {
			k.planner.Report(r)
			k.sender.Report(r)
		}
	}
	k.sender.ReportsRead()
}
