package sender

import (
	"context"
	"math/big"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/test/programs"
)

// NON-13, NON-14: a sender's process is killed by SIGKILL, and the job that comes then is sent by another one within
// 3 s, once: long before the lease has ended or the group has noticed. Before that it is frozen by SIGSTOP, for longer
// than a holder's session may be gone, and is not replaced.
func TestSuccession(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("builds and kills processes: run it with KEEPER_LONG=1")
	}
	for _, mode := range []string{basic, workerQueue} {
		t.Run(mode, func(t *testing.T) {
			s := newSite(t)
			s.usual(mode)
			for range 2 {
				d := s.succession()
				_ = d.holder.Signal(syscall.SIGSTOP)
				select {
				case <-d.watch.sent:
					t.Error("a frozen holder was robbed")
				case <-d.lost(3 * lease.Moment):
					t.Error("a frozen holder lost its lease")
				case <-time.After(3 * lease.Moment):
				}
				_ = d.holder.Signal(syscall.SIGCONT)
				if took := d.kill(); took > 3*time.Second {
					t.Errorf("sent %s after the kill", took)
				}
			}
		})
	}
}

// BenchmarkTakeover kills the process that has a signer's lease (SIGKILL) and measures until another one has given the
// next job's transaction to the nodes; with leases and a group as they are by default.
//
//	go test ./services/sender -run '^$' -bench Takeover -benchtime 12x
func BenchmarkTakeover(b *testing.B) {
	for _, mode := range []string{basic, workerQueue} {
		b.Run(mode, func(b *testing.B) {
			s := newSite(b)
			s.usual(mode)
			var took []float64
			for range b.N {
				took = append(took, s.succession().kill().Seconds())
			}
			report(b, "s", took)
			b.ReportMetric(0, "ns/op")
			b.Logf("%.2f", took)
		})
	}
}

// usual gives a site the lease and the group of a keeper.
func (s *site) usual(mode string) {
	usual := bus.DefaultConfig()
	s.cfg.Sender.Mode, s.cfg.Sender.LeaseTTL = mode, lease.DefaultTTL
	s.cfg.Kafka.SessionTimeout = usual.SessionTimeout
}

// succession is a process that has the lease of a signer, and has sent a job's transaction, and a sender that waits for
// it.
type succession struct {
	*site
	by     chain.Address
	before uint64
	holder *programs.Process
	heir   *running
	watch  *stopwatch
	next   func() // the next job comes
}

func (s *site) succession() *succession {
	s.t.Helper()
	by, key := s.keeper(0)
	jobs := s.orders(2, by)
	d := &succession{site: s, by: by, before: s.nonce(by), holder: s.launch(key)}
	s.say(jobs[0])
	s.result(jobs[0].ID, 1)
	d.next = func() {
		if s.cfg.Sender.Mode == workerQueue { // nobody reads its partition
			s.say(jobs[1])
		} else if _, err := txstore.NewIntents(s.db).Enqueue(s.t.Context(), s.found(jobs[1])[0]); err != nil {
			s.t.Fatal(err)
		}
	}
	for { // until the group leaves the signer's partition to the process
		d.watch = &stopwatch{sent: make(chan time.Time, 1)}
		d.heir = s.sender([]secret.String{key}, d.watch.on)
		s.eventually("it waits, or has nothing to do", func(ctx context.Context) bool {
			return d.heir.notices.healthy(ctx) == nil || d.heir.notices.has("held by")
		})
		select {
		case <-d.lost(2 * time.Second):
			d.heir.stop()
		case <-time.After(2 * time.Second):
			return d
		}
	}
}

// lost is told when the lease is the heir's within some time.
func (d *succession) lost(within time.Duration) <-chan struct{} {
	told := make(chan struct{})
	go func() {
		for began := time.Now(); time.Since(began) < within; time.Sleep(20 * time.Millisecond) {
			at, err := txstore.NewLeases(d.db).Status(d.t.Context(), d.by)
			if err == nil && at.Owner == d.heir.owner.ID {
				close(told)
				return
			}
		}
	}()
	return told
}

// kill kills the process, and returns how long after that the heir sent the next job's transaction.
func (d *succession) kill() time.Duration {
	d.t.Helper()
	killed := time.Now()
	d.holder.Kill()
	d.next()
	var sent time.Time
	select {
	case sent = <-d.watch.sent:
	case <-time.After(hangGuard):
		d.t.Fatal("it never came")
	}
	d.mustHaveSentTwo()
	return sent.Sub(killed)
}

// mustHaveSentTwo demands that two jobs took two transactions, and ends the heir.
func (d *succession) mustHaveSentTwo() {
	d.t.Helper()
	d.eventually("both jobs are done", func(context.Context) bool { return d.nonce(d.by) >= d.before+2 })
	d.heir.stop()
	if got := d.nonce(d.by); got != d.before+2 {
		d.t.Errorf("%d transactions for two jobs", got-d.before)
	}
}

// report reports the median and the 99th percentile of values as metrics.
func report(b *testing.B, unit string, values []float64) {
	b.Helper()
	slices.Sort(values)
	b.ReportMetric(values[len(values)/2], "p50-"+unit)
	b.ReportMetric(values[min(len(values)-1, len(values)*99/100)], "p99-"+unit)
	b.ReportMetric(values[len(values)-1], "max-"+unit)
}

// orders creates so many market orders, side by side, and returns what a planner says of them.
func (s *site) orders(n int, by chain.Address) (jobs []job.Job) {
	s.t.Helper()
	hashes := make([]common.Hash, n)
	for i := range hashes {
		var err error
		hashes[i], err = s.Venue.CreateOrder(s.t.Context(), s.trader.Key, exchange.OrderRequest{
			Market: s.market.Address, Collateral: s.market.Short, Type: exchange.MarketIncrease, IsLong: true,
			SizeUSD: dollars(100), CollateralAmount: big.NewInt(1e7),
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for _, hash := range hashes {
		key, found := s.Venue.RequestKey(s.mined(hash, nil), "OrderCreated")
		if !found {
			s.t.Fatal("no OrderCreated")
		}
		jobs = append(jobs, s.orderJob(chain.Hash(key), by))
	}
	return jobs
}

// stopwatch notes when bytes are first given to the nodes.
type stopwatch struct {
	node
	sent chan time.Time
}

func (w *stopwatch) on(s *Sender) { w.node, s.node = s.node, w }

func (w *stopwatch) SendRaw(ctx context.Context, raw []byte) error {
	select {
	case w.sent <- time.Now():
	default:
	}
	return w.node.SendRaw(ctx, raw)
}
