package devnet

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/service"
)

const hangGuard = 120 * time.Second

// deployed is what the devnets of the tests begin with.
var deployed = sync.OnceValues(func() (*Origin, error) { return Deploy(context.Background(), quiet()) })

func start(t *testing.T, cfg Config) *Devnet {
	t.Helper()
	o, err := deployed()
	if err != nil {
		t.Fatal(err)
	}
	begin := Start
	if cfg.Foundation() == quiet().Foundation() {
		begin = o.Start
	}
	d, err := begin(t.Context(), cfg, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	endsWell(t, d)
	return d
}

func endsWell(t *testing.T, d *Devnet) {
	t.Helper()
	t.Cleanup(func() {
		if err := d.Wait(); err != nil {
			t.Errorf("the devnet ended with %v", err)
		}
	})
}

func quiet() Config {
	cfg := DefaultConfig()
	cfg.Rate = 0
	return cfg
}

func dial(t *testing.T, url string) *ethclient.Client {
	t.Helper()
	client, err := ethclient.DialContext(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// eventually polls until ok, or fails the test when it looks hung.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never happened: %s", what)
		}
	}
}

func TestStartedDevnetIsUsable(t *testing.T) {
	d, err := Start(t.Context(), quiet(), zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	endsWell(t, d)
	for _, url := range []string{d.RPC(), d.WS()} {
		client := dial(t, url)
		if id, err := client.ChainID(t.Context()); err != nil || id.Uint64() != d.Deployment().ChainID {
			t.Errorf("%s: chain %v, %v", url, id, err)
		}
		if code, err := client.CodeAt(t.Context(), d.Deployment().Contracts.EventEmitter, nil); err != nil ||
			len(code) == 0 {
			t.Errorf("%s: no event emitter (%v)", url, err)
		}
	}
	client := dial(t, d.RPC())
	logs, err := client.FilterLogs(t.Context(), ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(d.Deployment().Block), ToBlock: d.Node().Head().Number,
		Addresses: []common.Address{d.Deployment().Contracts.EventEmitter},
	})
	if err != nil || len(logs) == 0 {
		t.Errorf("%d logs of the deployment, %v", len(logs), err)
	}
	head := d.Node().Head().Number
	eventually(t, "blocks by themselves", func() bool { return d.Node().Head().Number.Cmp(head) > 0 })
}

// What the feed serves is what the exchange's oracle accepts: same signer, same layout, same unit.
func TestOracleAcceptsTheFeed(t *testing.T) {
	d := start(t, quiet())
	client := dial(t, d.RPC())
	reports := fetchReports(t, d)
	if len(reports) != len(d.Deployment().Tokens) {
		t.Fatalf("%d reports for %d tokens", len(reports), len(d.Deployment().Tokens))
	}
	provider := contracts.Get(contracts.DevnetOracleProvider).ABI
	for _, r := range reports {
		input, err := provider.Pack("getOraclePrice", r.Token, []byte(r.Data))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.CallContract(t.Context(), ethereum.CallMsg{To: &r.Provider, Data: input}, nil)
		if err != nil {
			t.Fatalf("token %s: %v", r.Token, err)
		}
		words := make([]*big.Int, 5) // token, min, max, timestamp, provider
		for i := range words {
			words[i] = new(big.Int).SetBytes(answer[32*i : 32*i+32])
		}
		if words[1].String() != r.MinPrice || words[2].String() != r.MaxPrice ||
			words[3].Uint64() != r.TimestampMS/1000 {
			t.Errorf("the oracle reads %v from %+v", words, r)
		}
	}
}

type report struct {
	Token, Provider    common.Address
	Data               hexutil.Bytes
	MinPrice, MaxPrice string
	TimestampMS        uint64 `json:"timestampMs"`
}

func fetchReports(t *testing.T, d *Devnet) []report {
	t.Helper()
	var reports []report
	getJSON(t, d.Feed()+"/v1/reports", &reports)
	return reports
}

func getJSON(t *testing.T, url string, into any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %d %s: %v", url, resp.StatusCode, raw, err)
	}
}

// tellDevnet runs a command against a devnet and returns its exit code and output.
func tellDevnet(t *testing.T, d *Devnet, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := Command(t.Context(), append(args, "--rpc", d.RPC()), &out, &out)
	return code, out.String()
}

func TestCommands(t *testing.T) {
	cfg := quiet()
	cfg.BlockTime = 50 * time.Millisecond
	d := start(t, cfg)
	weth, err := d.Deployment().TokenBySymbol("WETH")
	if err != nil {
		t.Fatal(err)
	}
	must := func(args ...string) string {
		t.Helper()
		code, out := tellDevnet(t, d, args...)
		if code != 0 {
			t.Fatalf("%v: exit %d, %s", args, code, out)
		}
		return out
	}
	price := func() string {
		low, high := d.Prices().Mark(weth.Address)
		return new(big.Int).Div(low.Add(low, high), big.NewInt(2)).String()
	}
	must("pin", "--token", "WETH", "--usd", "2500")
	if got := price(); got != "2500000000000000" {
		t.Errorf("pinned at 2500: %s", got)
	}
	must("shock", "--token", "WETH", "--percent", "-20")
	if got := price(); got != "2000000000000000" {
		t.Errorf("20 %% less: %s", got)
	}
	must("unpin", "--token", "WETH")
	eventually(t, "price moves again", func() bool { return price() != "2000000000000000" })

	var fork evmnode.Fork
	if err := json.Unmarshal([]byte(must("reorg", "--depth", "2", "--style", "drop")), &fork); err != nil ||
		fork.OldTip.Number != fork.Ancestor.Number+2 {
		t.Errorf("reorg: %+v, %v", fork, err)
	}
	must("stall", "--seconds", "3600")
	head := d.Node().Head().Hash()
	must("stall-finality")
	must("resume")
	eventually(t, "blocks after the stall", func() bool { return d.Node().Head().Hash() != head })
}

func TestProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := DefaultProcess()
	p.Devnet.RPC, p.Devnet.Feed, p.Devnet.Rate = "127.0.0.1:0", "127.0.0.1:0", 0
	p.Devnet.Out = filepath.Join(t.TempDir(), "deployment.json")
	address := make(chan string, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		options := service.Options{Name: "devnet", Log: zerolog.Nop(),
			HTTP: service.HTTPSettings{Listen: "127.0.0.1:0"}}
		err := service.Run(ctx, options, func(sh *service.Shell) error {
			address <- sh.Addr()
			return Serve(sh, p)
		})
		if err != nil {
			t.Errorf("run: %v", err)
		}
	})
	defer wg.Wait()
	defer cancel()
	eventually(t, "deployment record", func() bool { _, err := os.Stat(p.Devnet.Out); return err == nil })
	raw, err := os.ReadFile(p.Devnet.Out)
	if err != nil {
		t.Fatal(err)
	}
	var written, served Record
	if err := json.Unmarshal(raw, &written); err != nil {
		t.Fatal(err)
	}
	getJSON(t, "http://"+<-address+"/v1/deployment", &served)
	if written.RPCURL != served.RPCURL || written.Contracts != served.Contracts || len(written.Accounts) != 4+Keepers {
		t.Errorf("written %+v, served %+v", written, served)
	}
	if id, err := dial(t, written.WSURL).ChainID(t.Context()); err != nil || id.Uint64() != written.ChainID {
		t.Errorf("chain at the recorded address: %v, %v", id, err)
	}
	if left, err := filepath.Glob(p.Devnet.Out + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The traders give keepers work: orders appear by themselves.
func TestTradersTrade(t *testing.T) {
	cfg := DefaultConfig()
	cfg.BlockTime, cfg.Rate = 50*time.Millisecond, 20
	d := start(t, cfg)
	client := dial(t, d.RPC())
	created := crypto.Keccak256Hash([]byte("OrderCreated"))
	from := new(big.Int).Set(d.Node().Head().Number)
	eventually(t, "ten orders", func() bool {
		logs, err := client.FilterLogs(t.Context(), ethereum.FilterQuery{
			FromBlock: from, ToBlock: d.Node().Head().Number,
			Addresses: []common.Address{d.Deployment().Contracts.EventEmitter},
			Topics:    [][]common.Hash{nil, {created}},
		})
		return err == nil && len(logs) >= 10
	})
}
