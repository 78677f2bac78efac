package bench

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"perpkeeper/lab/demo"
	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg/retention"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/price"
	"perpkeeper/test/programs"
	"perpkeeper/test/rig"
)

const (
	// blockTime is BSC's: what a block counts in a soak, however fast it is played.
	blockTime = 450 * time.Millisecond
	// soakLoad is how many times the demo's trades a soak asks for, unless KEEPER_SOAK_LOAD says otherwise.
	soakLoad = 20
	// soakKept is how long a soak that is played faster lets topics and the archive keep what they keep for days, in
	// time of the chain: half its warm-up, so that all that is judged is judged full.
	soakKept = 30 * time.Minute
	// leastWarm is how long is not judged at least, in time of the chain: statevm's undo rows are a thousand blocks.
	// And leastClock is the same on a clock: planners and senders keep prices of a window, whatever blocks do.
	leastWarm, leastClock = 8 * time.Minute, price.Window
	// soakSegment is how large a topic's file may be there, bytes: only whole ones are deleted.
	soakSegment = 1 << 20
)

// soakPlan is what a soak plays.
type soakPlan struct {
	length time.Duration // of the chain
	speed  int           // how many times as often as BSC's blocks come
	load   int           // times the demo's trades, per second of a clock
}

// soakPlanned reads the plan.
func soakPlanned(t *testing.T) soakPlan {
	t.Helper()
	text := os.Getenv("KEEPER_SOAK")
	if text == "" {
		t.Skip("takes hours: make soak, or set KEEPER_SOAK to its length, as 8h")
	}
	length, err := time.ParseDuration(text)
	plan := soakPlan{length, soakNumber(t, "KEEPER_SOAK_SPEED", 1), soakNumber(t, "KEEPER_SOAK_LOAD", soakLoad)}
	if err != nil || length < 2*plan.warm() {
		t.Fatalf("KEEPER_SOAK: %q is no duration of twice what is not judged (%s) or more", text, plan.warm())
	}
	return plan
}

func soakNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil || n < 1 {
		t.Fatalf("%s: %q is no number of 1 or more", name, os.Getenv(name))
	}
	return n
}

// blocks is how many blocks it has.
func (p soakPlan) blocks() uint64 { return uint64(p.length / blockTime) }

// clock is how long it takes if the machine keeps up.
func (p soakPlan) clock() time.Duration { return p.short(p.length) }

// short is a time of the chain on a clock.
func (p soakPlan) short(d time.Duration) time.Duration { return d / time.Duration(p.speed) }

// warm is how much of it is not judged.
func (p soakPlan) warm() time.Duration {
	return max(leastWarm, leastClock*time.Duration(p.speed), time.Duration(float64(p.length)*soakWarm))
}

// soak is a keeper that is soaked, with its stores.
type soak struct {
	*demo.Stack
	broker *broker.Broker
	topics string // folder
	db     *pgx.Conn
	demand float64 // trades begun per second
}

// startSoak starts a keeper alone on the embedded parts.
func startSoak(t *testing.T, plan soakPlan) *soak {
	t.Helper()
	t.Setenv("GOGC", "") // as an operator runs it, whatever this test runs with
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &soak{topics: filepath.Join(dir, "topics")}
	if s.broker, err = broker.Start(broker.Config{DataDir: s.topics}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.broker.Close)
	settings := demo.DefaultConfig().Demo
	settings.Binaries, settings.Keepers, settings.Dir, settings.Brokers = folder, 1, dir, s.broker.Addrs()
	settings.Rate, settings.BlockTime = plan.load*settings.Rate, plan.short(blockTime)
	s.demand = float64(settings.Rate)
	s.Stack = demo.New(settings, zerolog.New(zerolog.NewTestWriter(t)))
	s.Chain = map[string]string{"DIR": filepath.Join(dir, "chain")} // hours of a chain are more than fit into memory
	s.Console, s.Adapt = true, func(demo.Devnet) (map[string]string, string) { return soakSettings, "" }
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	if err := s.Start(context.Background(), func(step string) { t.Log(step) }); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReady(t.Context(), s.Keepers...); err != nil {
		t.Fatal(err)
	}
	if s.db, err = pgx.Connect(t.Context(), s.Keepers[0].Postgres); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close(context.Background()) })
	if plan.speed > 1 {
		s.keepFor(t, plan.short(soakKept))
	}
	return s
}

// soakSettings let a signer spend what it needs: a day's money would be gone after some 1600 orders at the traders'
// price of 1 gwei.
var soakSettings = map[string]string{"SENDER_FEE_BUDGET_DAY": "1000000"}

// keepFor lets topics and the archive keep what they keep for days for a shorter time than settings allow: the topics
// by their settings at the broker, the archive by an archiver of the sender's beside its own.
func (s *soak) keepFor(t *testing.T, d time.Duration) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.broker.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, topic := range wire.Topics(s.Devnet.ChainID, 1, 1) {
		alterTopic(t, client, topic.Name, "retention.ms", strconv.FormatInt(d.Milliseconds(), 10))
		alterTopic(t, client, topic.Name, "segment.bytes", strconv.Itoa(soakSegment))
	}
	db := rig.Postgres(t, s.Keepers[0].Postgres)
	keep := retention.DefaultConfig()
	keep.After = d
	archiver := retention.New(keep, txstore.NewArchive(db), retention.NewMetrics(nil),
		zerolog.New(zerolog.NewTestWriter(t)))
	var running sync.WaitGroup
	running.Go(func() { _ = archiver.Run(t.Context()) }) // it ends with the test
	t.Cleanup(running.Wait)
}

// alterTopic changes a setting of a topic, as an operator would.
func alterTopic(t *testing.T, client *kgo.Client, topic, name, value string) {
	t.Helper()
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = name, &value
	resource.Configs = append(resource.Configs, config)
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(answer.Resources[0].ErrorCode)
	}
	if err != nil {
		t.Fatalf("setting %s of %s: %v", name, topic, err)
	}
}
