package sim

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/tier"
	"perpkeeper/services/planner"
	"perpkeeper/services/sender"
	"perpkeeper/test/sim/fakechain"
	"perpkeeper/test/sim/ledger"
)

// keeper is one complete keeper: what survives it (databases, topics), its view of the chain, and, while it is up, its
// planner and its sender.
type keeper struct {
	stage *stage
	tier  int
	key   fakechain.Signer
	lags  lags
	ills  map[Ill]ailment

	ledger   *ledger.Ledger
	endpoint *fakechain.Endpoint
	state    *fakechain.Derived

	// The topics: what was said, which blocks were published, which reports came.
	said    []saying
	heard   int // up to where the intake has read
	blocks  []chain.BlockRef
	reports []price.Report

	life    int // raised when it is killed: what was entered for an earlier life does not happen
	planner *planner.Stepper
	sender  *sender.Stepper
	hands   hands
	ear     *ear
	head    chain.BlockRef
	alarm   time.Duration // when the next pass without a cause is entered for
	late    time.Duration // until when the state catches up after a start
	again   bool          // a planner's pass that failed is entered again
}

// saying is a job on the job topic.
type saying struct {
	at  time.Duration
	job job.Job
}

// lags are how long things take to reach a keeper. They stay the same for a play.
type lags struct{ head, topic, state, job, report time.Duration }

// ailment is a fault that lasts.
type ailment struct {
	count int
	since time.Duration
	by    time.Duration
}

// catchUp is how many times faster than the chain a keeper that was away reads what it has missed.
const catchUp = 200

func newKeeper(s *stage, n int) *keeper {
	random := rand.New(rand.NewPCG(s.seed, uint64(n))) //nolint:gosec // a play is to be repeated
	between := func(from, to int) time.Duration {
		return time.Duration(from+random.IntN(to-from)) * time.Millisecond
	}
	k := &keeper{
		stage: s, tier: n, key: fakechain.Signer{Account: accountOf(n)}, ills: map[Ill]ailment{},
		ledger: ledger.New(s.now), endpoint: s.chain.Endpoint(),
		lags: lags{head: between(50, 250), topic: between(5, 30), state: between(30, 120), job: between(2, 10),
			report: between(100, 400)},
	}
	k.state = k.endpoint.Derived()
	k.ledger.Disturb(k.disturbance)
	return k
}

// clock is the machine's, which may be wrong.
func (k *keeper) clock() time.Time { return k.stage.now().Add(k.ills[ClockOff].by) }

func (k *keeper) up() bool { return k.sender != nil }

// start starts planner and sender anew, as after a kill: with what databases and topics hold.
func (k *keeper) start() {
	k.life++
	k.ear, k.hands.signed = &ear{keeper: k}, map[chain.Hash]letter{}
	if err := k.assemble(); err != nil {
		k.planner, k.sender = nil, nil
		life := k.life
		k.stage.agenda.after(time.Second, func() {
			if k.life == life && k.ills[Down].count == 0 {
				k.start()
			}
		})
		return
	}
	k.head, k.alarm, k.again = chain.BlockRef{}, 0, false
	k.remember()
	k.event(0, k.hear)
	k.event(k.lags.topic, k.publish)
	k.event(k.lags.state, k.reload)
	k.event(k.lags.job, k.intake)
	k.event(sweepInterval, k.sweep)
}

const sweepInterval = 10 * time.Second

// assemble makes planner and sender.
func (k *keeper) assemble() (err error) {
	log := k.ear.logger()
	pc := planner.DefaultConfig()
	pc.Planner.Signers = []chain.Address{k.key.Account}
	k.planner = planner.NewStepper(pc, log, planner.NewMetrics(prometheus.NewRegistry()), k.state, k.say)
	k.planner.Assign([]int{0})
	k.sender, err = sender.NewStepper(context.Background(), k.config(), sender.Parts{
		Log: log, Metrics: sender.NewMetrics(prometheus.NewRegistry()), Owner: k.owner(), Keys: []signer.Signer{pen{k}},
		Node:  wire{k.endpoint, k},
		State: k.state, Leases: k.ledger, Nonces: k.ledger, Intents: k.ledger, Tell: k.tell, Clock: k.clock,
		Steady: k.stage.now,
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
	s := k.stage.scenario
	cfg := sender.DefaultConfig()
	cfg.Venue = contracts
	window := time.Duration(s.Tier.Window)
	cfg.Tier.Enabled, cfg.Tier.Priority, cfg.Tier.Tiers = true, k.tier, s.Keepers
	cfg.Tier.Policy, cfg.Tier.Window = s.Tier.Policy, window
	cfg.Tier.ExecutionDelay, cfg.Tier.RecoveryBuffer = time.Duration(k.tier-1)*window,
		time.Duration(s.Tier.RecoveryBuffer)
	for n := 1; n <= s.Keepers; n++ {
		if n != k.tier {
			cfg.Tier.Peers = append(cfg.Tier.Peers, tier.Peer{Tier: n, Signers: []chain.Address{accountOf(n)}})
		}
	}
	return cfg
}

// event enters something that happens to the keeper as it is now. The sender then does what that has woken.
func (k *keeper) event(wait time.Duration, do func()) {
	life := k.life
	k.stage.agenda.after(wait, func() {
		if k.life != life || !k.up() {
			return
		}
		k.suffer()
		do()
		k.pass()
		k.flush()
	})
}

// pass lets the sender do what is due, and enters when it wants to be asked again.
func (k *keeper) pass() {
	rest := max(k.sender.Pass(context.Background()), time.Millisecond)
	k.ear.trouble(k.sender.Trouble(context.Background()))
	at := k.stage.agenda.now + rest
	if k.alarm > k.stage.agenda.now && k.alarm <= at {
		return
	}
	k.alarm = at
	k.event(rest, func() {})
}

// mined lets the newest block reach the keeper, by and by.
func (k *keeper) mined() {
	lag := k.headLag()
	k.event(lag, k.hear)
	k.event(lag+k.lags.topic, k.publish)
	k.event(lag+k.stateLag(), k.reload)
}

// hear takes in the newest block that the endpoint shows.
func (k *keeper) hear() {
	head, err := k.endpoint.Head(context.Background())
	if err == nil && head.Hash != k.head.Hash {
		k.head = head
		k.sender.Head(head)
	}
}

// publish writes the blocks up to the newest to the log topic, and lets the sender read them.
func (k *keeper) publish() {
	head, err := k.endpoint.Head(context.Background())
	if err != nil || k.has(KafkaDown) {
		return
	}
	var last chain.Hash
	if n := len(k.blocks); n > 0 {
		last = k.blocks[n-1].Hash
	}
	_, entered := k.stage.chain.Path(last, head.Hash)
	for i, ref := range entered {
		k.blocks = append(k.blocks, ref)
		k.sender.Executed(ref, k.stage.chain.Ended(ref.Hash), i < len(entered)-1)
	}
}

// reload has the planner take in the state.
func (k *keeper) reload() { k.plan(k.planner.Reload) }

// sweep has the planner say everything again.
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
		if k.has(KafkaDown) || k.has(NoReports) {
			return // a feed publishes the newest, not the past
		}
		k.reports = append(k.reports, reports...)
		for _, r := range reports {
			k.planner.Report(r)
			k.sender.Report(r)
		}
		k.plan(k.planner.Tick)
	})
}

// say writes jobs to the job topic.
func (k *keeper) say(_ context.Context, jobs []job.Job) error {
	if k.has(KafkaDown) {
		return errKafka
	}
	for _, j := range jobs {
		k.said = append(k.said, saying{k.stage.agenda.now, j})
	}
	k.event(k.lags.job, k.intake)
	return nil
}

// intake reads the job topic. While the database is away it stays where it is.
func (k *keeper) intake() {
	for !k.has(KafkaDown) && k.heard < len(k.said) {
		if err := k.sender.Heard(context.Background(), k.said[k.heard].job); err != nil {
			k.event(time.Second, k.intake)
			return
		}
		k.heard++
	}
}

// remember reads the topics back as far as a process does when it starts.
func (k *keeper) remember() {
	const hindsight = 15 * time.Minute // of the witness
	now := k.stage.agenda.now
	k.heard = len(k.said)
	for k.heard > 0 && k.said[k.heard-1].at >= k.said[len(k.said)-1].at-k.config().Sender.MaxJobAge {
		k.heard--
	}
	for _, s := range k.said {
		if s.at >= now-hindsight {
			k.sender.Witnessed(s.job)
		}
	}
	for i, ref := range k.blocks {
		if since(ref.TimeMs) >= now-hindsight {
			k.sender.Executed(ref, k.stage.chain.Ended(ref.Hash), i < len(k.blocks)-1)
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
