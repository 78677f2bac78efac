package scanner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/pricefeed"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price/sources"
	"perpkeeper/pkg/service"
	"perpkeeper/pkg/setting/secret"
)

// run runs the whole service until the test ends, and returns its HTTP address and what it ends with.
func run(t *testing.T, cfg Config) (address string, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started, result, done := make(chan string, 1), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
		options := service.Options{Name: "scanner", Log: log, HTTP: service.HTTPSettings{Listen: "127.0.0.1:0"}}
		result <- service.Run(ctx, options, func(sh *service.Shell) error {
			started <- sh.Addr()
			return Start(sh, cfg)
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return <-started, result
}

// get fetches a page of the process.
func get(t *testing.T, address, page string) (status int, text string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func awaitReady(t *testing.T, address, reason string) {
	t.Helper()
	eventually(t, "readiness: "+reason, func() error {
		status, text := get(t, address, "/readyz")
		if ready := status == http.StatusOK; ready != (reason == "") || !strings.Contains(text, reason) {
			return fmt.Errorf("%w: %d %s", errNotYet, status, text)
		}
		return nil
	})
}

// The process as it is started: logs and prices come to their topics, readiness says why not, and a stop is a clean one
// (PIPE-2, PIPE-9).
func TestProcess(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	tr := newTruth(d)
	token := common.Address{7}
	feed, err := pricefeed.New(pricefeed.Config{
		Tokens:   []pricefeed.Token{{Address: token, Price: big.NewInt(1_000_000), Stride: 5}},
		Provider: common.Address{9}, Interval: 20 * time.Millisecond,
		Sign: func(common.Address, *big.Int, *big.Int, uint64) []byte { return []byte{1, 2} },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := feed.Run(ctx); err != nil {
			t.Errorf("running the price feed: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })

	cfg := testConfig(d, k.Addr())
	cfg.Scanner.Price = sources.DefaultConfig()
	cfg.Scanner.Price.URL = secret.MustURL(feed.URL())
	cfg.Scanner.Price.Failover.After = time.Second
	cfg.Scanner.MaxHeadAge = time.Second
	address, ended := run(t, cfg)
	d.trade(1)
	settle(t, k, tr)
	checkPrices(t, k, token)
	awaitReady(t, address, "no new head for") // the chain stands still
	d.mine(1)
	awaitReady(t, address, "")
	if _, text := get(t, address, "/metrics"); !strings.Contains(text,
		fmt.Sprintf("scanner_head_number %d", d.Head().Number)) ||
		!strings.Contains(text, "scanner_head_age_seconds") || !strings.Contains(text, "price_report_age_seconds{") {
		t.Error("metrics are missing")
	}

	cancel() // the price service goes away: the log road does not care
	awaitReady(t, address, "price")
	d.trade(2)
	settle(t, k, tr)
	select {
	case err := <-ended:
		t.Errorf("the process ended: %v", err)
	default:
	}
}

// checkPrices reads the price topic: each report once, in order, as the service gave it.
func checkPrices(t *testing.T, k *kafka, token common.Address) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	reader := k.client.Reader(wire.PriceTopic(1337), 0, 0)
	last := uint64(0)
	for range 10 {
		r, err := reader.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := wire.Decode(r)
		if err != nil {
			t.Fatal(err)
		}
		p, is := m.(wire.Price)
		if !is || p.Token != [20]byte(token) || p.TimeMs <= last || p.Provider != [20]byte{9} ||
			string(p.Data) != "\x01\x02" || p.ReceivedMs == 0 || p.Min.IsZero() {
			t.Fatalf("%+v after %d", m, last)
		}
		last = p.TimeMs
	}
}

// What no waiting can help ends the process at once, in one line. A node that is away is no such thing.
func TestProcessRefuses(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	for name, tt := range map[string]struct {
		spoil func(*Config)
		want  string
	}{
		"another chain": {func(c *Config) { c.Keeper.ChainID = 56 },
			"chain id 56 is wanted, the endpoint names 1337"},
		"a topic of another keeper": {func(c *Config) { c.Keeper.LogPartitions = 7 },
			"has 3 partitions and must have 7"},
		"a broker address that is none": {func(c *Config) { c.Kafka.Brokers = []string{"kafka"} }, "is not host:port"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(d, k.Addr())
			tt.spoil(&cfg)
			_, ended := run(t, cfg)
			if err := <-ended; err == nil || !strings.Contains(err.Error(), tt.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("the process ended with: %v", err)
			}
		})
	}
}

// A first block that cannot be read ends the process in one line that says what to do: its state is pruned everywhere,
// or the exchange was not there yet. A state that a node lacks near the head is waited for, and so is a node that is
// away while another one has pruned.
func TestStartThatCannotBeRead(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	d.mine(keptStates + 20)
	node := startLiar(t, d)
	node.tell("eth_call", func([]json.RawMessage, json.RawMessage) json.RawMessage {
		return json.RawMessage(
			`{"code": -32000, "message": "missing trie node 3a (path ) state 0x3a is not available"}`)
	})
	for name, tt := range map[string]struct {
		spoil func(*Config)
		want  []string
	}{
		"pruned": {
			func(c *Config) { c.Chain.URLs = []secret.URL{secret.MustURL(node.URL)} },
			[]string{"no endpoint has the state of block 1 any more", "SOME_FACTOR", "archive node to chain.urls",
				"scanner.start_block"},
		},
		"before the deployment": {
			func(c *Config) { c.Venue.DataStore = chain.Address{0xdd, 19: 7} },
			[]string{"scanner.start_block: at block 1 there is no contract at venue.data_store", "0 bytes",
				"was created"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(d, k.Addr())
			tt.spoil(&cfg)
			_, ended := run(t, cfg)
			err := <-ended
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("the process ended with: %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the process ended with %v, which does not say %q", err, want)
				}
			}
		})
	}
}

// An audit that no node answers is in the readiness with what to do, holds nothing else up, and passes when a node
// answers.
func TestAuditThatCannotBeRead(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	node := startLiar(t, d)
	node.tell("eth_call", func([]json.RawMessage, json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"code": -32000, "message": "missing trie node"}`)
	})
	cfg := testConfig(d, k.Addr())
	cfg.Scanner.FirstWords = nil
	cfg.Chain.URLs = []secret.URL{secret.MustURL(node.URL)}
	address, _ := run(t, cfg)
	tr := newTruth(d)
	d.trade(1)
	d.mine(3)
	settle(t, k, tr)
	awaitReady(t, address, "keeps the states of the last minutes")
	node.tell("eth_call", nil)
	eventually(t, "the audit passes", func() error {
		d.mine(1)
		if _, text := get(t, address, "/metrics"); strings.Contains(text, "scanner_words_audit_time_seconds 0\n") {
			return errNotYet
		}
		return nil
	})
	settle(t, k, tr)
	a, err := k.audit(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, b := range a.blocks {
		for _, p := range b.params {
			said++
			if !p.Audited() || p.Read.Number >= b.end.Block.Number || p.Name == "" {
				t.Errorf("block %d says %+v", b.end.Block.Number, p)
			}
		}
	}
	if said != len(perp.Words(nil)) {
		t.Errorf("%d words were said, want each of %d once", said, len(perp.Words(nil)))
	}
}
