package scanner

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// Events that no build knows: one of administration, with an owner among its topics, and one of a position.
const (
	workflow = "Some Workflow Executed"
	launched = "PositionLaunched"
)

// logLines collects what is logged.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logLines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func (l *logLines) on(s *Scanner) {
	s.log = zerolog.New(l)
	s.collector.log = s.log
}

// An event that the build does not know, whatever it touches, ends no scanner: it stands raw in every partition, under
// the key of whom it touches, and what follows is published. No start leaves more than its own claim.
func TestUnknownEventsArePublished(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	lines := &logLines{}
	s := start(t, testConfig(d, k.Addr()), k, lines.on)
	d.trade(1)
	d.emit(0,
		gmxtest.Log(emitter, workflow, []chain.Hash{{7}, accountOf(3).Hash()}, perp.Fields{"report": perp.Bytes{1}}),
		gmxtest.Log(emitter, launched, nil, perp.Fields{"account": accountOf(5), "market": marketOf(1)}))
	d.trade(2)
	d.emit(1, gmxtest.Log(emitter, launched, nil, perp.Fields{"positionKey": lostOrder}), // the DataStore knows whose
		gmxtest.Log(emitter, launched, nil, perp.Fields{"positionKey": order(99)})) // and of this that it is nobody's
	d.trade(3)
	settle(t, k, tr)
	if err := s.status.following(); err != nil {
		t.Errorf("it does not follow the head: %v", err)
	}
	if n := lines.count("unknown event of administration"); n != 1 {
		t.Errorf("%d events are named as passed over, want the one of administration", n)
	}
	_ = s.stop()
	start(t, testConfig(d, k.Addr()), k) // it begins after them, and reads them again
	d.trade(4)
	settle(t, k, tr)
	want := []chain.Hash{{}, accountOf(5).Hash(), accountOf(7).Hash(), order(99)}
	for p := range partitions {
		var keys []chain.Hash
		for r, err := range k.client.Scan(t.Context(), wire.LogTopic(evmnode.DefaultChainID), p, 0) {
			if err != nil {
				t.Fatal(err)
			}
			m, _, err := wire.Decode(r)
			if l, is := m.(wire.Log); err == nil && is && strange(l.Log) {
				keys = append(keys, chain.Hash(r.Key))
			}
		}
		if len(keys) != len(want) {
			t.Fatalf("partition %d holds them under %v", p, keys)
		}
		for i, key := range want {
			if keys[i] != key {
				t.Errorf("partition %d: the key of number %d is %s, want %s", p, i, keys[i], key)
			}
		}
	}
}

func strange(l chain.Log) bool {
	return l.Topics[1] == chain.Keccak256([]byte(workflow)) || l.Topics[1] == chain.Keccak256([]byte(launched))
}

// A log that has nowhere to go keeps its block back, and its scanner stays and says so: one that ended would be started
// again, and claim the topic each time.
func TestScannerRestsBeforeWhatItCannotRoute(t *testing.T) {
	torn := gmxtest.Log(emitter, launched, nil, nil)
	torn.Data = append(torn.Data, make([]byte, 32)...)
	for name, test := range map[string]struct {
		log  chain.Log
		says string
	}{
		"an order that is nobody's":    {orderResized(order(99)), order(99).Hex() + " is unknown"},
		"an event that is not encoded": {torn, "32 bytes follow the data's end"},
	} {
		t.Run(name, func(t *testing.T) {
			d, k := startDevnet(t), startKafka(t)
			d.mine(3)
			d.emit(0, test.log)
			d.trade(1)
			s := start(t, testConfig(d, k.Addr()), k)
			eventually(t, "it says what it cannot route", func() error {
				if err := s.status.following(); err == nil || !strings.Contains(err.Error(), test.says) {
					return errors.Join(errNotYet, err)
				}
				return nil
			})
			select {
			case <-s.ended:
				t.Errorf("it ended: %v", s.err)
			default:
			}
			for p := range partitions {
				if a, err := k.audit(t.Context(), p); err != nil || len(a.epochs) != 1 {
					t.Errorf("partition %d has the claims %v, %v", p, a.epochs, err)
				}
			}
		})
	}
}
