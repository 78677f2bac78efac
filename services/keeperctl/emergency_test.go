package keeperctl

import (
	"context"
	"encoding/hex"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet"
	"perpkeeper/lab/devnet/exchange"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/notify/webhook"
	"perpkeeper/pkg/operator/emergency"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/test/rig"
)

// alarm is a keeper's database and a venue whose Config contract an account of its own may call.
type alarm struct {
	emergencyCommands

	t       *testing.T
	devnet  *devnet.Devnet
	chain   *ethclient.Client
	venue   *exchange.Client
	account devnet.RecordAccount
	address string // of the database
}

func newAlarm(t *testing.T) *alarm {
	t.Helper()
	cfg := devnet.DefaultConfig()
	cfg.BlockTime = 100 * time.Millisecond
	d := rig.NewExchange(t, cfg)
	a := &alarm{t: t, devnet: d.Devnet, chain: d.Client, venue: d.Venue, address: pgtest.URL(t)}
	for _, account := range d.Record().Accounts {
		if account.Purpose == "deployer" {
			a.account = account
		}
	}
	a.cfg = defaultConfig()
	a.cfg.Own.Operator = "alice"
	at := d.Deployment()
	a.cfg.Keeper.ChainID = at.ChainID
	a.cfg.Venue.DataStore = chain.Address(at.Contracts.DataStore)
	a.cfg.Emergency.Contract, a.cfg.Emergency.Account = chain.Address(at.Contracts.Config),
		chain.Address(a.account.Address)
	a.cfg.Emergency.Markets = []chain.Address{chain.Address(at.Markets[0].Address)}
	a.store = txstore.NewEmergencies(rig.Postgres(t, a.address))
	a.dial = func(ctx context.Context) (venueNode, error) {
		cfg := evm.DefaultConfig()
		cfg.URLs = []secret.URL{secret.MustURL(d.RPC())}
		node, err := evm.Dial(ctx, at.ChainID, cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
		if err != nil {
			return nil, err
		}
		t.Cleanup(node.Close)
		return node, nil
	}
	return a
}

func (a *alarm) told(line string) string {
	a.t.Helper()
	var out strings.Builder
	d := a.emergencyCommands
	d.out = printer{Writer: &out}
	if err := d.run(a.t.Context(), strings.Fields(line)); err != nil {
		return out.String() + "error: " + err.Error()
	}
	return out.String()
}

func (a *alarm) want(line string, parts ...string) string {
	a.t.Helper()
	got := a.told(line)
	for _, part := range parts {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), part) {
			a.t.Errorf("keeperctl emergency %s: %q is not in what was told:\n%s", line, part, got)
		}
	}
	return got
}

// sends makes calls as the holder of the role does with what was handed over.
func (a *alarm) sends(calldata ...string) (last common.Hash) {
	a.t.Helper()
	key, err := crypto.ToECDSA(a.account.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, text := range calldata {
		data, err := hex.DecodeString(text)
		if err != nil {
			a.t.Fatal(err)
		}
		nonce, err := a.chain.PendingNonceAt(a.t.Context(), a.account.Address)
		if err != nil {
			a.t.Fatal(err)
		}
		tx, err := types.SignNewTx(key, types.LatestSignerForChainID(new(big.Int).SetUint64(a.cfg.Keeper.ChainID)),
			&types.LegacyTx{
				Nonce: nonce, GasPrice: big.NewInt(1e9), Gas: gasToAdjust,
				To: (*common.Address)(&a.cfg.Emergency.Contract), Data: data,
			})
		if err != nil {
			a.t.Fatal(err)
		}
		if err := a.chain.SendTransaction(a.t.Context(), tx); err != nil {
			a.t.Fatal(err)
		}
		if _, err := a.venue.Wait(a.t.Context(), tx.Hash()); err != nil {
			a.t.Fatal(err)
		}
		last = tx.Hash()
	}
	return last
}

func handed(out, what string) (all []string) {
	for _, m := range regexp.MustCompile(what+`\s+0x([0-9a-f]+)`).FindAllStringSubmatch(out, -1) {
		all = append(all, m[1])
	}
	return all
}

func (a *alarm) factor() *big.Int {
	a.t.Helper()
	v, err := a.venue.Uint(a.t.Context(), "MIN_COLLATERAL_FACTOR", a.devnet.Deployment().Markets[0].Address)
	if err != nil {
		a.t.Fatal(err)
	}
	return v
}

// LIQ-15: nothing is done that is not permitted; a dry run does nothing; what is handed over does on the venue what it
// says, and can be taken back; all of it is on record.
func TestEmergencyOnChain(t *testing.T) {
	a := newAlarm(t)
	a.want("run raise_margin nobody executes", "error: raise_margin is not done: it is not among emergency.actions")
	a.want("run raise_margin", "error: say why")
	a.want("list", "nothing was ever done")
	a.cfg.Emergency.Actions = []string{"raise_margin", "pause_positions"}
	before := a.factor()
	a.want("run raise_margin nobody executes", "MIN_COLLATERAL_FACTOR from "+before.String(),
		"nothing was done; it would succeed")
	if a.factor().Cmp(before) != 0 {
		t.Fatal("a dry run has changed the venue")
	}

	a.cfg.Own.DryRun = false
	out := a.want("run raise_margin nobody executes", "have 0x", "send these calls")
	a.sends(handed(out, "calldata")...)
	raised := new(big.Int).Div(new(big.Int).Mul(before, big.NewInt(150)), big.NewInt(100))
	if got := a.factor(); got.Cmp(raised) != 0 {
		t.Errorf("the factor is %s, want %s", got, raised)
	}
	tx := a.sends(handed(out, "way back")...)
	if got := a.factor(); got.Cmp(before) != 0 {
		t.Errorf("the way back leads to %s, want %s", got, before)
	}
	run := regexp.MustCompile(`emergency done (\S+) raise_margin`).FindStringSubmatch(out)
	a.want("done "+run[1]+" raise_margin "+tx.Hex(), "recorded")

	out = a.want("run pause_positions bad debt", "no new market increase orders", "no new limit increase orders",
		"no new stop increase orders")
	a.sends(handed(out, "calldata")...)
	market := a.devnet.Deployment().Markets[0]
	key, err := crypto.ToECDSA(a.account.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	await := func(hash common.Hash, err error) error {
		if err == nil {
			_, err = a.venue.Wait(t.Context(), hash)
		}
		return err
	}
	if err := await(a.venue.Mint(t.Context(), key, market.Short, big.NewInt(1e15))); err != nil {
		t.Fatal(err)
	}
	if err := await(a.venue.Approve(t.Context(), key, market.Short)); err != nil {
		t.Fatal(err)
	}
	hundred := new(big.Int).Mul(big.NewInt(100), new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil))
	order := exchange.OrderRequest{
		Market: market.Address, Collateral: market.Short, Type: exchange.MarketIncrease, IsLong: true, SizeUSD: hundred,
		CollateralAmount: big.NewInt(10_000_000),
	}
	if err := await(a.venue.CreateOrder(t.Context(), key, order)); err == nil ||
		!strings.Contains(err.Error(), "DisabledFeature") {
		t.Errorf("the venue takes a new position: %v", err)
	}

	a.cfg.Emergency.Account = chain.Address{9}
	a.want("run pause_positions again", "error: rehearsing pause_positions (no new market increase orders")
	entries, err := a.store.List(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	stages := map[emergency.Stage]int{}
	for _, e := range entries {
		stages[e.Stage]++
		if e.Operator != "alice" || e.Run == "" || e.At.IsZero() {
			t.Errorf("recorded %+v", e)
		}
		if e.Stage == emergency.Done && e.TxHash != chain.Hash(tx) {
			t.Errorf("recorded %+v", e)
		}
	}
	want := map[emergency.Stage]int{emergency.Planned: 8, emergency.Rehearsed: 5, emergency.HandedOver: 4,
		emergency.Done: 1, emergency.Failed: 1}
	for stage, n := range want {
		if stages[stage] != n {
			t.Errorf("%d entries of stage %s, want %d", stages[stage], stage, n)
		}
	}
	a.want("list", "pause_positions failed false alice again")
}

// LIQ-15: what happens in the keeper; the record cannot be changed.
func TestEmergencyInTheKeeper(t *testing.T) {
	a := newAlarm(t)
	a.cfg.Own.DryRun = false
	a.cfg.Emergency.Actions = []string{"notify", "liquidate_first"}
	a.cfg.Emergency.BadDebt = 10
	a.want("plan", "bad debt within the hour: 0 USD (calls for actions above 10; 0 = never)", "notify yes here",
		"raise_margin no (emergency.actions) on chain")
	a.want("run liquidate_first nobody executes", "0 liquidations are pending", "done")
	a.want("run notify nobody executes", "error: doing notify: no receiver of [notify] is the operators'")
	posted := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		posted <- r.Header.Get("Perpkeeper-Signature")
	}))
	defer hook.Close()
	a.cfg.Notify.Webhook = []webhook.Config{{Name: "operator", Audience: notify.Operator,
		URL: secret.MustURL(hook.URL), Secret: secret.New("a secret of the hook")}}
	a.want("run notify nobody executes", "post to the operators' receivers of [notify]", "done")
	if sign := <-posted; !strings.HasPrefix(sign, "t=") {
		t.Errorf("signed %q", sign)
	}
	for _, line := range []string{"", "plan x", "done a", "dance"} {
		a.want(line, "error: usage: keeperctl emergency plan | list")
	}
	a.want("done x raise_margin 0x12", `error: "0x12" is no transaction`)
}
