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

// seed decides what is done to whom; it is printed, and KEEPER_SEED repeats a run as far as its timing can be.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64()
	if text := os.Getenv("KEEPER_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("KEEPER_SEED=%d", n)
	return n
}

// rig is a node that mines at once, a database, and the proxies to both that the processes use.
type rig struct {
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
}

const chainID = 1337

func newRig(t *testing.T, onBlock func(chain.BlockRef)) *rig {
	t.Helper()
	g := openRig(t)
	var address string
	g.node, address = startNode(t, chainID, g.signer, onBlock)
	g.rpc, g.throughRPC = newProxy(t, address)
	return g
}

// openRig returns a rig without a node.
func openRig(t *testing.T) *rig {
	t.Helper()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("hammer")))
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{
		t: t, key: hex.EncodeToString(crypto.FromECDSA(key)),
		signer: chain.Address(crypto.PubkeyToAddress(key.PublicKey)), url: pgtest.URL(t),
	}
	g.db = parts.Postgres(t, g.url)
	g.database, g.throughDatabase = newProxy(t, g.url)
	return g
}

// site is the rig of whole senders: with a broker, and a state that follows the node.
type site struct {
	*rig
	keeper wire.Config
	kafka  bus.Config
	client *bus.Client
	// venueSettings come after the others, and win.
	venueSettings []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{keeper: wire.Config{ChainID: chainID, LogPartitions: 1, JobPartitions: senders}}
	s.openKafka(t)
	logs, prices := s.client.Producer(wire.LogTopic(chainID)), s.client.Producer(wire.PriceTopic(chainID))
	claim(t, logs)
	markets := size(t, 300)
	s.rig = newRig(t, func(b chain.BlockRef) {
		most := min(markets, 1000)
		follow(t, logs, prices, b, markets-most, markets)
		markets -= most
	})
	s.runStatevm()
	return s
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
func (g *rig) disturbAll(ctx context.Context, processes []*process, calm time.Duration) (await func()) {
	base, h := seed(g.t), disturbance{ttl: leaseTTL, calm: calm}
	var group sync.WaitGroup
	for i, p := range processes {
		group.Go(func() {
			if err := p.disturb(ctx, rand.New(rand.NewPCG(base, uint64(i))), h); err != nil {
				g.t.Error(err)
			}
		})
	}
	group.Go(func() { g.cut(ctx, rand.New(rand.NewPCG(base, senders))) })
	return group.Wait
}

// cut loses requests and replies, of claims and broadcasts above all.
func (g *rig) cut(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		wait(ctx, between(random, 50*time.Millisecond, 500*time.Millisecond))
		f := fault(random.IntN(2))
		switch random.IntN(20) {
		case 0:
			g.database.cutAll()
		case 1:
			g.rpc.cutAll()
		case 2, 3, 4:
			g.database.lose(f, anything)
		case 5, 6:
			g.rpc.lose(f, anything)
		case 7, 8, 9, 10, 11, 12:
			g.rpc.lose(f, broadcasts)
		default:
			g.database.lose(f, g.claims.in)
		}
	}
}

// await polls until nothing is missing. What is missing must change within patience; once a minute it is logged.
func (g *rig) await(what string, missing func(ctx context.Context) string) {
	g.t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	last, since, reported := "", time.Now(), time.Now()
	for {
		now := missing(g.t.Context())
		if now == "" {
			return
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > patience {
			g.t.Fatalf("%s: for %s nothing has changed: %s", what, patience, now)
		}
		if time.Since(reported) > time.Minute {
			reported = time.Now()
			g.t.Log(now)
		}
		<-tick.C
	}
}
