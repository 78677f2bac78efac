package sender

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/secret"
)

// measured waits for what is noted.
func measured[T any](b testing.TB, notes <-chan T) (note T) {
	b.Helper()
	guard := time.NewTimer(hangGuard)
	defer guard.Stop()
	select {
	case note = <-notes:
	case <-guard.C:
		b.Fatal("it never came")
	}
	return note
}

// report reports the median and the 99th percentile of values as metrics.
func report[T float64 | uint64](b *testing.B, unit string, values []T) {
	b.Helper()
	slices.Sort(values)
	b.ReportMetric(float64(values[len(values)/2]), "p50-"+unit)
	b.ReportMetric(float64(values[min(len(values)-1, len(values)*99/100)]), "p99-"+unit)
	b.ReportMetric(float64(values[len(values)-1]), "max-"+unit)
}

// orders creates so many market orders, side by side, and returns what a planner says of them.
func (s *site) orders(n int, by chain.Address) (jobs []job.Job) {
	s.t.Helper()
	hashes := make([]common.Hash, n)
	for i := range hashes {
		var err error
		hashes[i], err = s.venue.CreateOrder(s.t.Context(), s.trader.Key, exchange.OrderRequest{
			Market: s.market.Address, Collateral: s.market.Short, Type: exchange.MarketIncrease, IsLong: true,
			SizeUSD: dollars(100), CollateralAmount: big.NewInt(1e7),
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for _, hash := range hashes {
		key, found := s.venue.RequestKey(s.mined(hash, nil), "OrderCreated")
		if !found {
			s.t.Fatal("no OrderCreated")
		}
		jobs = append(jobs, s.orderJob(chain.Hash(key), by))
	}
	return jobs
}

// BenchmarkFirstBroadcast measures from the moment a job is read off the topic to the moment its transaction is first
// given to the nodes, with a real Postgres and the devnet's exchange behind the simulated call. Jobs come one at a
// time. What is wanted on a quiet machine: p50 ≤ 5 ms, p99 ≤ 25 ms.
//
// The parts of that road are told beside it, see [stretch]. With KEEPER_DURABLE=1 Postgres waits for its disk.
//
//	go test ./services/sender -run '^$' -bench FirstBroadcast -benchtime 300x
func BenchmarkFirstBroadcast(b *testing.B) {
	s := newSite(b)
	by, key := s.keeper(0)
	w := newStopwatch()
	sn := s.sender([]secret.String{key}, w.on)
	warm := s.orders(8, by)
	s.say(warm...)
	for range warm {
		measured(b, w.received)
		measured(b, w.sent)
	}
	var took []float64
	parts := map[string][]float64{}
	for left := b.N; left > 0; { // in portions, because an order does not live for long
		jobs := s.orders(min(left, 50), by)
		left -= len(jobs)
		for _, j := range jobs {
			s.eventually("little is in flight", func(ctx context.Context) bool {
				inFlight, err := sn.intents.InFlight(ctx, by)
				return err == nil && len(inFlight) < 4
			})
			w.begin()
			s.say(j)
			received := measured(b, w.received)
			took = append(took, inMs(measured(b, w.sent).Sub(received)))
			for part, d := range w.stretches() {
				parts[part] = append(parts[part], d)
			}
		}
	}
	report(b, "ms", took)
	for part, took := range parts {
		report(b, "ms:"+part, took)
	}
	b.ReportMetric(0, "ns/op")
}

// heights notes the head at which bytes are given to the nodes, and may keep them from these.
type heights struct {
	node
	at   func() uint64
	mute bool
	sent chan uint64
}

func (h *heights) SendRaw(ctx context.Context, raw []byte) error {
	select {
	case h.sent <- h.at():
	default: // nobody measures
	}
	if h.mute {
		return errors.New("the connection broke")
	}
	return h.node.SendRaw(ctx, raw)
}

// BenchmarkRebroadcast counts the blocks between two broadcasts of a transaction that is not mined, and those from a
// fork that drops a mined one to its next broadcast. What is wanted: at most 2.
//
//	go test ./services/sender -run '^$' -bench Rebroadcast -benchtime 30x
func BenchmarkRebroadcast(b *testing.B) {
	height := func(s *site) uint64 { return s.devnet.Node().Head().Number.Uint64() }
	b.Run("unmined", func(b *testing.B) {
		s := newSite(b)
		by, key := s.keeper(0)
		h := &heights{at: func() uint64 { return height(s) }, mute: true, sent: make(chan uint64, 1)}
		s.sender([]secret.String{key}, func(sn *Sender) { h.node, sn.node = sn.node, h })
		s.say(s.orders(1, by)...)
		last := measured(b, h.sent)
		var blocks []uint64
		for range b.N {
			next := measured(b, h.sent)
			blocks, last = append(blocks, next-last), next
		}
		report(b, "blocks", blocks)
		b.ReportMetric(0, "ns/op")
	})
	b.Run("dropped by a fork", func(b *testing.B) {
		s := newSite(b)
		by, key := s.keeper(0)
		h := &heights{at: func() uint64 { return height(s) }, sent: make(chan uint64, 1)}
		sn := s.sender([]secret.String{key}, func(sn *Sender) { h.node, sn.node = sn.node, h })
		var blocks []uint64
		for range b.N {
			j := s.orders(1, by)[0]
			s.devnet.Node().StallFinality()
			s.say(j)
			f := s.minedOf(sn, by, chain.Hash{})
			<-h.sent // the first broadcast
			s.replace(f.Mined.Block.Number, branchOff{1, evmnode.Drop})
			tip := height(s)
			blocks = append(blocks, max(tip, measured(b, h.sent))-tip)
			s.devnet.Resume()
			s.result(j.ID, 1)
		}
		report(b, "blocks", blocks)
		b.ReportMetric(0, "ns/op")
	})
}
