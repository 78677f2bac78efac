package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/lab/embedded/broker"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/canon"
	parts "perpkeeper/test/rig"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	// patience bounds every wait. It is a guard against hanging, no statement about speed.
	patience = 2 * time.Minute
	// blockTime is short, so that a death and its recovery see many blocks.
	blockTime = 150 * time.Millisecond
	// partitions of the log topic.
	partitions = 4
	// still is how long the head stands while the tables are compared; Resume ends it.
	still = time.Hour
)

// long skips what is not part of the default run.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("set KEEPER_LONG=1")
	}
}

// rig is a chain with an exchange and its public, a broker and a database, and the processes between them.
type rig struct {
	t        *testing.T
	devnet   *devnet.Devnet
	chainID  uint64
	broker   *broker.Broker // nil on a Kafka cluster
	kafka    *bus.Client
	db       *pg.DB
	chain    *canon.Chain
	executor *executor
	env      []string

	scanner, statevm *process
	others           []*process // second ones of either
}

// newRig brings everything up but the processes. Settings are added to those of both processes.
func newRig(t *testing.T, settings ...string) *rig {
	t.Helper()
	r := &rig{t: t}
	brokers := r.startBroker()
	r.startDevnet()
	cfg := bus.DefaultConfig()
	cfg.Brokers = brokers
	r.kafka = parts.Kafka(t, cfg)
	keeper := wire.Config{ChainID: r.chainID, LogPartitions: partitions, JobPartitions: 1}
	parts.Ensure(t, r.kafka, keeper.Topics()...)
	url := pgtest.URL(t)
	r.db = parts.Postgres(t, url)
	deployment := r.devnet.Deployment()
	emitter, store := chain.Address(deployment.Contracts.EventEmitter), chain.Address(deployment.Contracts.DataStore)
	r.executor = newExecutor(t, r.devnet)
	r.env = append([]string{
		"PERPKEEPER_KEEPER_CHAIN_ID=" + strconv.FormatUint(r.chainID, 10), "PERPKEEPER_KEEPER_LOG_PARTITIONS=" +
			strconv.Itoa(partitions),
		"PERPKEEPER_CHAIN_URLS=" + r.devnet.RPC() + "," + r.devnet.WS(),
		"PERPKEEPER_KAFKA_BROKERS=" + strings.Join(brokers, ","), "PERPKEEPER_POSTGRES_URL=" + url,
		"PERPKEEPER_VENUE_EVENT_EMITTER=" + emitter.Hex(), "PERPKEEPER_VENUE_DATA_STORE=" + store.Hex(),
		"PERPKEEPER_SCANNER_START_BLOCK=" + strconv.FormatUint(deployment.Block, 10),
	}, settings...)
	if os.Getenv("KAFKA_BROKERS") == "" { // Apache Kafka grants no shorter session than the default
		r.env = append(r.env, "PERPKEEPER_KAFKA_SESSION_TIMEOUT=1s")
	}
	var err error
	if r.chain, err = canon.Open(t.Context(), r.chainID, r.devnet.RPC(), emitter, deployment.Block); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.chain.Close)
	r.scanner, r.statevm = newProcess(t, "scanner", "scanner", r.env),
		newProcess(t, "statevm", "statevm", r.env)
	return r
}

func (r *rig) startBroker() []string {
	r.t.Helper()
	if brokers := os.Getenv("KAFKA_BROKERS"); brokers != "" {
		return strings.Split(brokers, ",")
	}
	r.broker = parts.BrokerOf(r.t, broker.Config{DataDir: r.t.TempDir(), MinSessionTimeout: 500 * time.Millisecond})
	return r.broker.Addrs()
}

func (r *rig) startDevnet() {
	r.t.Helper()
	cfg := devnet.DefaultConfig()
	cfg.BlockTime, cfg.Rate = blockTime, 3 // the race detector makes every transaction dear
	if os.Getenv("KEEPER_LONG") != "" {
		cfg.Rate = 8
	}
	if os.Getenv("KAFKA_BROKERS") != "" { // topics of its own on a shared cluster
		cfg.ChainID = uint64(time.Now().UnixNano() % 1_000_000_007)
	}
	r.chainID = cfg.ChainID
	r.devnet = parts.Devnet(r.t, cfg)
}

// run starts both processes.
func (r *rig) run() *rig {
	r.t.Helper()
	r.scanner.start()
	r.statevm.start()
	return r
}

// second makes another process of the same kind; it is not running yet.
func (r *rig) second(program string) *process {
	r.t.Helper()
	p := newProcess(r.t, program+"-2", program, r.env)
	r.others = append(r.others, p)
	return p
}

// head is the number of the chain's newest block.
func (r *rig) head() uint64 { return r.devnet.Node().Head().Number.Uint64() }

// mine makes blocks at once, with executions among them.
func (r *rig) mine(blocks int) {
	r.t.Helper()
	const some = 10
	for made := 0; made < blocks; made += some {
		r.executor.round()
		if err := r.devnet.Node().Mine(uint64(min(some, blocks-made))); err != nil {
			r.t.Fatal(err)
		}
	}
}

// reorg replaces up to 8 blocks that are not final.
func (r *rig) reorg(random *rand.Rand) {
	r.t.Helper()
	r.executor.round()
	depth, style := 1+random.Uint64N(8), []evmnode.ForkStyle{evmnode.Replay, evmnode.Drop}[random.IntN(2)]
	if _, err := r.devnet.Node().ReorgUnfinalized(r.t.Context(), depth, style); err != nil {
		r.t.Fatalf("a reorg of depth %d, %s: %v", depth, style, err)
	}
}

// trade makes blocks until positions have been opened.
func (r *rig) trade() {
	r.t.Helper()
	const enough = 3
	r.await("trading", func(context.Context) error {
		r.mine(1)
		if r.executor.orders < enough {
			return fmt.Errorf("%d orders of %d", r.executor.orders, enough)
		}
		return nil
	})
	r.mine(10)
}

// warmUp brings the tables to a chain with some trading on it, and with room for reorgs.
func (r *rig) warmUp() {
	r.t.Helper()
	r.trade()
	r.compareAtStalledHead("the start")
}
