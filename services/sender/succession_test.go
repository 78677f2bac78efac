package sender

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/secret"
	"perpkeeper/pkg/txmgr/lease"
)

// NON-13, NON-14: a sender's process is killed by SIGKILL, and the job that comes then is sent by another one within
// 3 s, once: long before the lease has ended or the group has noticed. Before that it is frozen by SIGSTOP, for longer
// than a holder's session may be gone, and is not replaced.
func TestSuccession(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("builds and kills processes: run it with KEEPER_LONG=1")
	}
	binary := buildBinary(t, "")
	for _, mode := range []string{basic, workerQueue} {
		t.Run(mode, func(t *testing.T) {
			s := newSite(t)
			s.usual(mode)
			for range 2 {
				d := s.succession(binary)
				_ = d.holder.cmd.Process.Signal(syscall.SIGSTOP)
				select {
				case <-d.watch.claimed:
					t.Error("a frozen holder was robbed")
				case <-d.lost(3 * lease.Moment):
					t.Error("a frozen holder lost its lease")
				case <-time.After(3 * lease.Moment):
				}
				_ = d.holder.cmd.Process.Signal(syscall.SIGCONT)
				if took := d.kill(); took > 3*time.Second {
					t.Errorf("sent %s after the kill", took)
				}
			}
		})
	}
}

// A process that stands still keeps its session: it is replaced when its lease has ended, and not before.
func TestFrozenHolderIsReplacedWhenItsLeaseEnds(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("builds and freezes processes: run it with KEEPER_LONG=1")
	}
	s := newSite(t)
	s.usual(basic)
	s.cfg.Sender.LeaseTTL = 6 * time.Second
	d := s.succession(buildBinary(t, ""))
	frozen := time.Now()
	_ = d.holder.cmd.Process.Signal(syscall.SIGSTOP)
	d.next()
	// it was renewed at most a third of the lease, and some, before
	if after := measured(t, d.watch.claimed).Sub(frozen); after < s.cfg.Sender.LeaseTTL/2 {
		t.Errorf("replaced after %s, with a lease of %s", after, s.cfg.Sender.LeaseTTL)
	}
	_ = d.holder.cmd.Process.Signal(syscall.SIGCONT)
	d.mustHaveSentTwo()
}

// BenchmarkTakeover kills the process that has a signer's lease (SIGKILL) and measures until another one has given the
// next job's transaction to the nodes; with leases and a group as they are by default.
//
//	go test ./services/sender -run '^$' -bench Takeover -benchtime 12x
func BenchmarkTakeover(b *testing.B) {
	binary := buildBinary(b, "")
	for _, mode := range []string{basic, workerQueue} {
		b.Run(mode, func(b *testing.B) {
			s := newSite(b)
			s.usual(mode)
			var took []float64
			for range b.N {
				took = append(took, s.succession(binary).kill().Seconds())
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
	holder *process
	heir   *running
	watch  *stopwatch
	next   func() // the next job comes
}

func (s *site) succession(binary string) *succession {
	s.t.Helper()
	by, key := s.keeper(0)
	jobs := s.orders(2, by)
	d := &succession{site: s, by: by, before: s.nonce(by), holder: s.launch(binary, key, "")}
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
		d.watch = newStopwatch()
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
	_ = d.holder.cmd.Process.Kill()
	killed := time.Now()
	d.holder.dies()
	d.next()
	took := measured(d.t, d.watch.sent).Sub(killed)
	d.mustHaveSentTwo()
	return took
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
