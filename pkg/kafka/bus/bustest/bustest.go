// Package bustest is a test suite of what a cluster and the bus must do together: the same suite runs on the embedded
// broker and on real Apache Kafka.
//
// A second, unrelated client library serves as the independent witness: it reads what is really in the log, writes what
// package bus never writes, and asks brokers for what services never ask.
package bustest

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/kafka/bus"
)

// Cluster is what the suite runs on. A nil function is something this cluster cannot do; its tests are skipped and say
// so.
type Cluster struct {
	Brokers     []string
	Replication int // copies of each partition

	// Stop ends all brokers in an orderly way and Start brings them back at the same addresses with the same data.
	Stop, Start func(t testing.TB)
	// Crash kills all brokers without warning. Start brings them back.
	Crash func(t testing.TB)
	// MoveLeader makes another broker the leader of a partition.
	MoveLeader func(t testing.TB, topic string, partition int)
	// CrashLeader kills the broker that leads a partition and returns what brings it back.
	CrashLeader func(t testing.TB, topic string, partition int) (restore func())
}

// hangGuard ends a test that would otherwise wait for ever. It is no measure of anything.
const hangGuard = 5 * time.Minute

// Run runs the suite. What disturbs the whole cluster comes last and alone.
func Run(t *testing.T, cluster Cluster) {
	t.Helper()
	t.Run("calm", func(t *testing.T) {
		for name, test := range calm {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(newSite(t, cluster))
			})
		}
	})
	for name, test := range rough {
		t.Run("rough/"+name, func(t *testing.T) { test(newSite(t, cluster)) })
	}
}

var calm = map[string]func(*site){
	"round trip":                         roundTrip,
	"a batch is never torn":              batchIsNeverTorn,
	"cut replies make no copies":         cutRepliesMakeNoCopies,
	"brokers judge sequences":            brokersJudgeSequences,
	"producers have identities":          producersHaveIdentities,
	"a fenced producer stops":            fencedProducerStops,
	"a taken sequence stops a producer":  takenSequenceStopsProducer,
	"a topic made anew stops a producer": topicMadeAnewStopsProducer,
	"an unclear end is said":             unclearEndIsSaid,
	"a clear end leaves it usable":       clearEndLeavesItUsable,
	"too large is refused":               tooLargeIsRefused,
	"a message of 9 MB":                  messageOf9MB,
	"a hole stops the reader":            holeStopsReader,
	"a start outside the log":            startOutsideLog,
	"a record that was replaced":         replacedRecordStopsReader,
	"the end is waited at":               endIsWaitedAt,
	"transactions stop the reader":       transactionsStopReader,
	"compressed batches can be read":     compressedBatchesCanBeRead,
	"topics are verified":                topicsAreVerified,
	"wrong settings are refused":         wrongSettingsAreRefused,
	"settings may do more than needed":   settingsMayDoMore,
	"copies are counted":                 copiesAreCounted,
	"nothing creates topics":             nothingCreatesTopics,
	"bounds and times":                   boundsAndTimes,
	"partitions are shared":              partitionsAreShared,
	"a killed member is replaced":        killedMemberIsReplaced,
	"no stale deliveries":                noStaleDeliveries,
	"a handler's error ends it":          handlerErrorEndsIt,
}

var rough = map[string]func(*site){
	"restart":      restart,
	"crash":        crash,
	"leader moves": leaderMoves,
	"leader dies":  leaderDies,
}

// site is one test's place in the cluster.
type site struct {
	*testing.T

	cluster Cluster
	ctx     context.Context //nolint:containedctx // a site is one test, and this is that test's context
	topics  atomic.Int64
}

func newSite(t *testing.T, cluster Cluster) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	t.Cleanup(cancel)
	return &site{T: t, cluster: cluster, ctx: ctx}
}

// client returns a client whose configuration the caller may adjust.
func (s *site) client(adjust ...func(*bus.Config)) *bus.Client {
	cfg := bus.DefaultConfig()
	cfg.Brokers = s.cluster.Brokers
	for _, a := range adjust {
		a(&cfg)
	}
	c, err := bus.New(cfg, zerolog.New(zerolog.NewTestWriter(s.T)).Level(zerolog.WarnLevel),
		bus.NewMetrics(prometheus.NewRegistry()))
	s.must(err)
	s.Cleanup(c.Close)
	return c
}

// over routes a client through a network that can be disturbed.
func over(n *network) func(*bus.Config) {
	return func(cfg *bus.Config) { cfg.Dial = n.dial }
}

// name returns a topic or group name that nobody else uses.
func (s *site) name() string {
	clean := regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(s.Name(), "-")
	return fmt.Sprintf("%s.%d.%d", strings.ToLower(clean[max(0, len(clean)-40):]), time.Now().UnixNano(),
		s.topics.Add(1))
}

func (s *site) topic(partitions int) string { return s.topicWith(partitions, nil) }

func (s *site) topicWith(partitions int, config map[string]string) string {
	s.Helper()
	spec := bus.TopicSpec{Name: s.name(), Partitions: partitions, Replication: s.cluster.Replication, Config: config}
	s.must(s.client().Ensure(s.ctx, []bus.TopicSpec{spec}))
	return spec.Name
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// eventually polls until ok says so.
func (s *site) eventually(what string, ok func() bool) {
	s.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-s.ctx.Done():
			s.Fatalf("never: %s", what)
		}
	}
}

// numbered makes records whose values are the n numbers from first.
func numbered(first, n int) []bus.Record {
	records := make([]bus.Record, n)
	for i := range records {
		records[i] = bus.Record{Value: fmt.Append(nil, first+i)}
	}
	return records
}

// wantNumbers checks that values are the numbers from 0 to n-1: nothing missing, nothing twice, nothing out of order.
func (s *site) wantNumbers(values []string, n int) {
	s.Helper()
	for i, v := range values {
		if v != strconv.Itoa(i) {
			s.Fatalf("the log holds %d records; number %d is %q", len(values), i, v)
		}
	}
	if len(values) != n {
		s.Fatalf("the log holds %d records, want %d", len(values), n)
	}
}
