package hammer

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/services/statevm"
	parts "perpkeeper/test/rig"
)

const (
	// patience is how long nothing may happen. It is a guard against hanging, no statement about speed.
	patience = 2 * time.Minute
	// leaseTTL is the shortest there is, so that freezing a process past it costs least.
	leaseTTL = 3 * time.Second
	// so many processes fight for one signer.
	senders = 3
)

// size is how many jobs are fought for: KEEPER_HAMMER, or a few.
func size(t *testing.T, otherwise int) int {
	t.Helper()
	text := os.Getenv("KEEPER_HAMMER")
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KEEPER_HAMMER=%q is no number of jobs", text)
	}
	return n
}

const chainID = 1337

// site is a node that mines at once, a database, the proxies to both that the senders use, a broker, and a state that
// follows the node.
type site struct {
	t      *testing.T
	key    string
	signer chain.Address
	url    string // of the database itself
	db     *pg.DB
	node   *node

	database, rpc               *proxy
	throughDatabase, throughRPC string // addresses at the far end of the lines
	claims                      claims
	handed                      bool // see allowed

	keeper wire.Config
	kafka  bus.Config
	client *bus.Client
	// venueSettings come after the others, and win.
	venueSettings []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, url: pgtest.URL(t),
		keeper: wire.Config{ChainID: chainID, LogPartitions: 1, JobPartitions: senders}}
	s.key, s.signer = signer(t)
	s.db = parts.Postgres(t, s.url)
	s.database, s.throughDatabase = newProxy(t, s.url)
	s.openKafka(t)
	logs, prices := s.client.Producer(wire.LogTopic(chainID)), s.client.Producer(wire.PriceTopic(chainID))
	claim(t, logs)
	markets := size(t, 300)
	var address string
	s.node, address = startNode(t, chainID, s.signer, func(b chain.BlockRef) {
		most := min(markets, 1000)
		follow(t, logs, prices, b, markets-most, markets)
		markets -= most
	})
	s.rpc, s.throughRPC = newProxy(t, address)
	s.runStatevm()
	return s
}

// signer is the one that all senders share.
func signer(t *testing.T) (key string, account chain.Address) {
	t.Helper()
	made, err := crypto.ToECDSA(crypto.Keccak256([]byte("hammer")))
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(crypto.FromECDSA(made)), chain.Address(crypto.PubkeyToAddress(made.PublicKey))
}

func (s *site) openKafka(t *testing.T) {
	t.Helper()
	s.kafka = bus.DefaultConfig()
	s.kafka.Brokers = parts.Broker(t).Addrs()
	s.client = parts.Kafka(t, s.kafka)
	parts.Ensure(t, s.client, s.keeper.Topics()...)
}

// runStatevm starts the real statevm, so that the state follows the node and senders find it fresh.
func (s *site) runStatevm() {
	cfg := statevm.DefaultConfig()
	cfg.Keeper, cfg.Kafka, cfg.Postgres.URL = s.keeper, s.kafka, secret.MustURL(s.url)
	vm := statevm.New(cfg, zerolog.Nop(), statevm.NewMetrics(prometheus.NewRegistry()), s.client, s.db)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = vm.Run(ctx) }) // senders hold back when the state does not follow
	s.t.Cleanup(func() { cancel(); running.Wait() })
}

// claim begins the log topic: nothing counts before.
func claim(t *testing.T, logs *bus.Producer) {
	t.Helper()
	record, err := wire.Encode(nil, wire.Epoch{Number: 1, Owner: "hammer"}, 1, 1)
	if err == nil {
		_, err = logs.Produce(t.Context(), 0, []bus.Record{record})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// follow publishes a block without logs, as a scanner does, and a price that is as old as the block. In the block
// stands that the markets of some jobs were audited.
func follow(t *testing.T, logs, prices *bus.Producer, b chain.BlockRef, from, to int) {
	encode := func(m wire.Message) bus.Record {
		record, err := wire.Encode(nil, m, 1, 1)
		if err != nil {
			t.Errorf("encoding a record of block %d: %v", b.Number, err)
		}
		return record
	}
	var records []bus.Record
	for id := from; id < to; id++ {
		records = append(records, encode(wire.Audit{Block: b, Market: marketOf(id), Read: b, Words: 1}))
	}
	records = append(records,
		encode(wire.BlockEnd{Block: b, Records: uint32(len(records)), Digest: wire.Digest(records)}))
	price := wire.Price{
		Token: chain.Address{0x70}, Provider: chain.Address{0x71}, Data: []byte{1}, Min: chain.Pow10(12),
		Max: chain.Pow10(12), TimeMs: b.TimeMs, Source: "hammer",
		ReceivedMs: b.TimeMs,
	}
	for producer, batch := range map[*bus.Producer][]bus.Record{logs: records, prices: {encode(price)}} {
		if _, err := producer.Produce(context.Background(), 0, batch); err != nil {
			t.Errorf("publishing block %d: %v", b.Number, err)
		}
	}
}

// settings are those of a sender at the far end of the lines.
func (s *site) settings() []string {
	return append([]string{
		"PERPKEEPER_LOG_LEVEL=warn",
		fmt.Sprintf("PERPKEEPER_KEEPER_CHAIN_ID=%d", s.keeper.ChainID),
		fmt.Sprintf("PERPKEEPER_KEEPER_LOG_PARTITIONS=%d", s.keeper.LogPartitions),
		fmt.Sprintf("PERPKEEPER_KEEPER_JOB_PARTITIONS=%d", s.keeper.JobPartitions),
		"PERPKEEPER_CHAIN_URLS=" + s.throughRPC,
		"PERPKEEPER_KAFKA_BROKERS=" + s.kafka.Brokers[0], "PERPKEEPER_KAFKA_SESSION_TIMEOUT=2s",
		"PERPKEEPER_POSTGRES_URL=" + s.throughDatabase + "&pool_max_conns=20",
		"PERPKEEPER_VENUE_DATA_STORE=" + storeAt.Hex(),
		"PERPKEEPER_SIGNER_DEV=true", "PERPKEEPER_SIGNER_DEV_KEYS=" + s.key,
		"PERPKEEPER_SENDER_MODE=basic", fmt.Sprintf("PERPKEEPER_SENDER_LEASE_TTL=%s", leaseTTL),
		"PERPKEEPER_SENDER_MAX_IN_FLIGHT=200",
		"PERPKEEPER_SENDER_FEE_BUDGET_DAY=1000",
		// A shared machine may be slow, and nothing here is about how fresh is fresh enough.
		"PERPKEEPER_SENDER_MAX_LAG=30s",
	}, s.venueSettings...)
}

// disturbAll disturbs processes until ctx ends, and loses requests and answers of theirs. They all run
// in the end.
func (s *site) disturbAll(ctx context.Context, processes []*process, calm time.Duration) (await func()) {
	base, h := parts.Seed(s.t), disturbance{ttl: leaseTTL, calm: calm}
	var group sync.WaitGroup
	for i, p := range processes {
		group.Go(func() {
			if err := p.disturb(ctx, rand.New(rand.NewPCG(base, uint64(i))), h); err != nil {
				s.t.Error(err)
			}
		})
	}
	group.Go(func() { s.cut(ctx, rand.New(rand.NewPCG(base, senders))) })
	return group.Wait
}

// cut loses requests and replies, of claims and broadcasts above all.
func (s *site) cut(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		wait(ctx, between(random, 50*time.Millisecond, 500*time.Millisecond))
		f := fault(random.IntN(2))
		switch random.IntN(20) {
		case 0:
			s.database.Cut()
		case 1:
			s.rpc.Cut()
		case 2, 3, 4:
			s.database.lose(f, anything)
		case 5, 6:
			s.rpc.lose(f, anything)
		case 7, 8, 9, 10, 11, 12:
			s.rpc.lose(f, broadcasts)
		default:
			s.database.lose(f, s.claims.in)
		}
	}
}

// await polls until nothing is missing. What is missing must change within patience; once a minute it is logged.
func (s *site) await(what string, missing func(ctx context.Context) string) {
	s.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	last, since, reported := "", time.Now(), time.Now()
	for {
		now := missing(s.t.Context())
		if now == "" {
			return
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > patience {
			s.t.Fatalf("%s: for %s nothing has changed: %s", what, patience, now)
		}
		if time.Since(reported) > time.Minute {
			reported = time.Now()
			s.t.Log(now)
		}
		<-tick.C
	}
}
