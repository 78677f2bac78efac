package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/txm"
)

// willFork has the first endpoint's chain fork after a time, and its node be some software.
func willFork(after time.Duration, software string) func(*Facts) {
	return func(f *Facts) {
		e := &f.Endpoints[0]
		at := time.UnixMilli(int64(e.Head.TimeMs)).Add(after)
		e.Software = software
		e.Forks = []evm.Fork{{Name: "Next", At: at, Least: map[string]evm.Version{"bsc": {1, 8, 2}}}}
	}
}

var errPlanted = errors.New("planted")

// planted are faults by name: what is done to a healthy keeper, and the checks that find it, each once a fault.
var planted = []struct {
	name string
	want string // checks, by commas; ! = a failure
	do   func(*Facts)
}{
	{"an endpoint is down", "endpoint-reachable", func(f *Facts) { f.Endpoints[0].Down = errPlanted }},
	{"an endpoint is of another chain", "!endpoint-chain", func(f *Facts) { f.Endpoints[1].Wrong = errPlanted }},
	{"a block has little gas for calls", "block-gas", func(f *Facts) { f.Endpoints[0].CallGas = txm.MaxGas - 1 }},
	{"an endpoint will miss a fork", "endpoint-fork", willFork(time.Hour, "Geth/v1.8.1/linux")},
	{"nobody knows whether it will", "endpoint-fork", willFork(time.Hour, "erigon/2.60.8/linux")},
	{"it will not", "", willFork(time.Hour, "Geth/v1.8.2/linux")},
	{"it has followed all the same", "", willFork(-time.Hour, "Geth/v1.8.1/linux")},
	{"it has missed the fork", "endpoint-lag,!endpoint-fork", func(f *Facts) {
		f.Endpoints[2].Head, f.Endpoints[2].Final = block(900), block(898)
		f.Endpoints[2].Forks = []evm.Fork{{Name: "Next", At: time.UnixMilli(int64(f.Endpoints[0].Head.TimeMs))}}
	}},
	{"an endpoint lags", "endpoint-lag", func(f *Facts) {
		f.Endpoints[2].Head, f.Endpoints[2].Final = block(900), block(898)
	}},
	{"an endpoint knows no finality", "!endpoint-finalized", func(f *Facts) { f.Endpoints[0].FinalError = errPlanted }},
	{"finality stands still", "!endpoint-finalized", func(f *Facts) { f.Endpoints[0].Final = block(800) }},
	{"no receipts at one endpoint", "endpoint-receipts", func(f *Facts) { f.Endpoints[0].ReceiptsError = errPlanted }},
	{"no receipts anywhere", "!endpoint-receipts,!endpoint-receipts,!endpoint-receipts", func(f *Facts) {
		for i := range f.Endpoints {
			f.Endpoints[i].ReceiptsError = errPlanted
		}
	}},
	{"no state of the final block", "!endpoint-state", func(f *Facts) { f.Endpoints[1].StateError = errPlanted }},
	{"no batches", "endpoint-batch", func(f *Facts) { f.Endpoints[0].BatchError = errPlanted }},
	{"an endpoint with few credits", "endpoint-credits", func(f *Facts) { f.Endpoints[1].PerSecond = 5 }},
	{"credits are used up", "endpoint-throttled", func(f *Facts) {
		f.State.Seen.Requests, f.State.Seen.Throttled = 50_000, 501
	}},
	{"one endpoint without the history", "endpoint-history", func(f *Facts) {
		f.Endpoints[0].HistoryError = errPlanted
	}},
	{"the history is nowhere", "!endpoint-history,!endpoint-history,!endpoint-history", func(f *Facts) {
		for i := range f.Endpoints {
			f.Endpoints[i].HistoryError = errPlanted
		}
	}},
	{"no archive at the first start", "endpoint-archive", func(f *Facts) {
		f.Pre, f.State = true, nil
		for i := range f.Endpoints {
			f.Endpoints[i].OldState = false
		}
	}},
	{"one endpoint on another branch", "!endpoint-agreement", func(f *Facts) {
		f.Endpoints[2].Settled = chain.Hash{8}
	}},
	{"two endpoints contradict each other", "!endpoint-agreement,!endpoint-agreement", func(f *Facts) {
		f.Endpoints = f.Endpoints[:2]
		f.Endpoints[1].Settled = chain.Hash{8}
	}},
	{"one host", "endpoint-hosts", func(f *Facts) { f.Hosts = 1 }},
	{"a relay is down", "endpoint-private", func(f *Facts) {
		f.Endpoints = append(f.Endpoints, Endpoint{Name: "https://relay", Private: true, Down: errPlanted})
	}},

	{"the contracts cannot be asked", "!venue-asked", func(f *Facts) { f.Venue, f.VenueError = nil, errPlanted }},
	{"the DataStore is none", "!venue-contract", func(f *Facts) { f.Venue.Roles = chain.Address{} }},
	{"no DataStore", "!venue-contract", func(f *Facts) { f.Venue.DataStore = chain.Address{} }},
	{"another EventEmitter", "!venue-emitter", func(f *Facts) { f.Venue.Emitter = chain.Address{7} }},
	{"a handler is missing", "!venue-handlers", func(f *Facts) { f.Venue.Missing = []string{"adl"} }},
	{"no market", "!venue-markets", func(f *Facts) { f.Venue.Markets, f.Venue.Tokens = 0, nil }},
	{"no start block", "!venue-start-block", func(f *Facts) { f.Settings.StartBlock = 0 }},
	{"a start block of the future", "!venue-start-block", func(f *Facts) { f.Settings.StartBlock = 2000 }},
	{"a start block after the first market", "!venue-start-block", func(f *Facts) { f.Venue.MarketsAtStart = 1 }},

	{"a key cannot be read", "!signer-keys", func(f *Facts) { f.Keys, f.KeysError = nil, errPlanted }},
	{"no key", "!signer-keys", func(f *Facts) { f.Keys, f.KeysAsked = nil, false }},
	{"a signer without its key", "!signer-key", func(f *Facts) { f.Keys = []chain.Address{} }},
	{"no signer is listed", "!signer-key", func(f *Facts) { f.Settings.Signers = nil }},
	{"a key nobody uses", "signer-unlisted", func(f *Facts) { f.Keys = append(f.Keys, chain.Address{5}) }},
	{"a peer's key", "!signer-peer", func(f *Facts) { f.Settings.Tier.Peers[0].Signers[0] = ownSigner }},
	{"development keys on a mainnet", "!signer-development", func(f *Facts) { f.Development = true }},
	{"no role ORDER_KEEPER", "!signer-role", func(f *Facts) { delete(f.Signers[0].Roles, "ORDER_KEEPER") }},
	{"no role LIQUIDATION_KEEPER", "!signer-role", func(f *Facts) { delete(f.Signers[0].Roles, "LIQUIDATION_KEEPER") }},
	{"no role ADL_KEEPER", "!signer-role", func(f *Facts) { delete(f.Signers[0].Roles, "ADL_KEEPER") }},
	{"no role FROZEN_ORDER_KEEPER", "!signer-role", func(f *Facts) {
		f.Settings.Frozen = true
	}},
	{"a binding of somebody else", "!signer-binding", func(f *Facts) {
		f.Settings.Bindings = []Binding{{peerOne, job.Lanes()}}
	}},
	{"a binding without lanes", "!signer-binding", func(f *Facts) {
		f.Settings.Bindings = []Binding{{ownSigner, nil}}
	}},
	{"a binding to a lane that is none", "!signer-binding", func(f *Facts) {
		f.Settings.Bindings = []Binding{{ownSigner, append(job.Lanes(), "express")}}
	}},
	{"a signer that is bound twice", "!signer-binding", func(f *Facts) {
		f.Settings.Bindings = []Binding{{ownSigner, job.Lanes()}, {ownSigner, job.Lanes()}}
	}},
	{"a lane without a signer", "!signer-binding", func(f *Facts) {
		f.Settings.Bindings = []Binding{{ownSigner, []job.Lane{job.LiquidationLane, job.OrderLane}}}
	}},
	{"an empty signer", "!signer-balance", func(f *Facts) { f.Signers[0].Balance = &chain.Uint{} }},
	{"a poor signer", "signer-balance", func(f *Facts) { wei := chain.Pow10(15); f.Signers[0].Balance = &wei }},
	{"a day left", "signer-burn", func(f *Facts) { f.Signers[0].Spent = chain.Pow10(18) }},
	{"an hour left", "!signer-burn", func(f *Facts) { f.Signers[0].Spent = chain.U64(24).Mul(chain.Pow10(18)) }},
	{"a signer no sender knows", "!signer-known", func(f *Facts) { f.Signers[0].Known = false }},
	{"a paused signer", "!signer-paused", func(f *Facts) { f.Signers[0].Paused = "by hand" }},
	{"a signer nobody attends", "!signer-lease", func(f *Facts) { f.Signers[0].Attended = false }},
	{"a lease from the future", "!signer-lease", func(f *Facts) { f.Signers[0].LeaseAhead = true }},
	{"a stranger with our key", "!signer-nonce", func(f *Facts) { n := uint64(43); f.Signers[0].Latest = &n }},
	{"a gap", "!signer-gaps", func(f *Facts) { f.Signers[0].Gaps = []uint64{40} }},

	{"no source", "!price-sources", func(f *Facts) { f.Sources = nil }},
	{"one of two sources is silent", "price-source,price-lone,price-lone", func(f *Facts) {
		f.Sources[1].Reports, f.Sources[1].Error = nil, errPlanted
	}},
	{"every source is silent", "!price-source,!price-source,!price-token,!price-token", func(f *Facts) {
		for i := range f.Sources {
			f.Sources[i].Reports, f.Sources[i].Error = nil, errPlanted
		}
	}},
	{"a feed of another kind", "price-unreadable", func(f *Facts) { f.Sources[0].Unreadable = errPlanted }},
	{"a token without a source", "!price-token", func(f *Facts) {
		f.Venue.Tokens, f.Topics.Reports[chain.Address{0x13}] = append(f.Venue.Tokens,
			Token{chain.Address{0x13}, 8}), nowMs
	}},
	{"one source alone", "price-lone", func(f *Facts) { f.Sources = f.Sources[:1] }},
	{"one source alone for a token", "price-lone", func(f *Facts) { delete(f.Sources[1].Reports, usdc) }},
	{"an old report", "!price-age", func(f *Facts) { f.report(0, usdc, func(r *Report) { r.TimeMs -= 61_000 }) }},
	{"a report from the future", "!price-ahead", func(f *Facts) {
		f.report(0, usdc, func(r *Report) { r.TimeMs += 9_000 })
	}},
	{"a wide report", "!price-spread", func(f *Facts) {
		f.report(0, usdc, func(r *Report) { r.Min, r.Max = chain.U64(970_000), chain.U64(1_030_000) })
	}},
	{"two sources contradict each other", "!price-deviation", func(f *Facts) {
		f.report(1, usdc, func(r *Report) { r.Min, r.Max = chain.U64(1_030_000), chain.U64(1_030_000) })
	}},
	{"wrong decimals", "!price-decimals", func(f *Facts) { f.Sources[0].Decimals[eth] = 8 }},
	{"a provider the exchange refuses", "!price-provider", func(f *Facts) {
		f.report(0, eth, func(r *Report) { r.Provider = chain.Address{7} })
		f.Venue.Providers[chain.Address{7}] = false
	}},
	{"a token whose reports nobody signs", "!price-provider,!price-provider", func(f *Facts) {
		f.unsigned(0)
		f.unsigned(1)
	}},
	{"a source whose reports nobody signs", "price-provider", func(f *Facts) { f.unsigned(1) }},
	{"an empty price topic", "!price-topic", func(f *Facts) { f.Topics.Reports = nil }},
	{"a price that is fixed at two values", "!price-fixed", func(f *Facts) {
		f.Topics.Stuck = []string{"nothing with this token is executed"}
	}},
	{"a token's reports have stopped", "!price-topic", func(f *Facts) { f.Topics.Reports[eth] -= 31_000 }},

	{"sharing is off, and there are peers", "!tier-off", func(f *Facts) { f.Settings.Tier.Enabled = false }},
	{"a tier without signers", "tier-peers", func(f *Facts) { f.Settings.Tier.Peers = f.Settings.Tier.Peers[:1] }},

	{"a peer's signer that is not listed executes", "tier-unlisted", func(f *Facts) { f.State.Seen.Executed[0] = 6 }},
	{"some of many are executed by somebody with a role", "", func(f *Facts) {
		f.State.Seen.Executed[0], f.State.Seen.Executed[1] = 6, 700
	}},
	{"a backup that does not wait for its window", "tier-windows", func(f *Facts) {
		f.State.Seen.Ages[2] = []AgeCount{{time.Second, 20}, {30 * time.Second, 21}, {60 * time.Second, 30}}
	}},
	{"a Master that executes late", "tier-windows", func(f *Facts) {
		f.State.Seen.Ages[1] = []AgeCount{{time.Second, 2}, {30 * time.Second, 10}, {60 * time.Second, 400}}
	}},

	{"Kafka is away", "!kafka-reachable", func(f *Facts) { f.Topics = &Topics{Error: errPlanted} }},
	{"a topic is missing", "!topic-exists", func(f *Facts) {
		f.Topics.All[0] = Topic{Name: "x", Missing: true, Want: 4}
	}},
	{"a topic may not be described", "!topic-exists", func(f *Facts) { f.Topics.All[0].Error = errPlanted }},
	{"other partitions", "!topic-partitions", func(f *Facts) { f.Topics.All[0].Partitions = 3 }},
	{"a topic that forgets", "!topic-settings", func(f *Facts) { f.Topics.All[0].Settings = errPlanted }},
	{"a partition without a leader", "!topic-leader", func(f *Facts) {
		f.Topics.All[0].Leaderless, f.Topics.All[0].InSync = 1, 0
	}},
	{"a copy is behind", "topic-isr", func(f *Facts) { f.Topics.All[0].InSync = 2 }},
	{"statevm lags", "topic-lag", func(f *Facts) { f.Topics.Lag[2] = 6000 }},
	{"a webhook is not told", "topic-unsent", func(f *Facts) { f.Topics.Unsent["owner"] = 101 }},
	{"endpoints contradict each other", "endpoint-disputes", func(f *Facts) {
		f.Topics.Disputes = []string{"http://a/: lied, for bodies: x", "http://b/: undecided, for nonces: y"}
	}},
	{"dead letters", "topic-dead-letters", func(f *Facts) { f.Topics.DeadLetters = 1 }},

	{"Postgres is away", "!postgres-reachable", func(f *Facts) { f.State = &State{Error: errPlanted} }},
	{"a schema of another build", "!state-schema", func(f *Facts) { f.State = &State{Schema: errPlanted} }},
	{"the state is halted", "!state-halted", func(f *Facts) { f.State.Halted, f.State.TimeMs = "reorg", 1 }},
	{"no block yet", "!state-started", func(f *Facts) { f.State.Started = false }},
	{"an old state", "!state-age", func(f *Facts) { f.State.TimeMs -= 30_000 }},
	{"a partition has stopped", "state-skew", func(f *Facts) { f.State.Skew = 101 }},
	{"a state of other partitions", "!state-partitions", func(f *Facts) { f.State.Partitions = 8 }},
	{"a generation is left over", "state-generation", func(f *Facts) { f.State.Leftover = []int{1} }},
	{"a liquidation failed", "!state-liquidations", func(f *Facts) { f.State.Failed = 1 }},
	{"a delayed job was given up", "state-delayed", func(f *Facts) { f.State.Parked = 1 }},
	{"a process is not ready", "!state-ready", func(f *Facts) {
		f.State.Unready = []Process{{"planner", "kafka: gone"}}
	}},

	{"a clock that is behind", "!machine-clock", func(f *Facts) {
		f.Machine.Now = f.Machine.Now.Add(-4 * time.Second)
	}},
	{"a chain that stands still", "!chain-stalled", func(f *Facts) { f.Machine.Now = f.Machine.Now.Add(time.Minute) }},
	{"a disk that fills", "machine-disk", func(f *Facts) { f.Machine.Disks[0].Free = 9 << 30 }},
	{"a large disk that fills", "machine-disk", func(f *Facts) {
		f.Machine.Disks[0] = Disk{Path: "/", Free: 90 << 30, Total: 1000 << 30}
	}},
	{"a full disk", "!machine-disk", func(f *Facts) { f.Machine.Disks[0].Free = 1 << 30 }},
	{"a disk that is none", "machine-disk", func(f *Facts) { f.Machine.Disks[0].Error = errPlanted }},
	{"no alert reaches Alertmanager", "!alert-watchdog", func(f *Facts) { f.Machine.Unwatched = true }},
	{"nobody is told", "alert-route", func(f *Facts) { f.Machine.Operator = false }},
	{"a monitor nobody hears", "!alert-route", func(f *Facts) { f.Settings.Monitor, f.Machine.Operator = true, false }},
	{"Alertmanager is away", "!alert-manager", func(f *Facts) { f.Machine.AlertsError = errPlanted }},
}

func (f *Facts) report(source int, token chain.Address, change func(*Report)) {
	r := f.Sources[source].Reports[token]
	change(&r)
	f.Sources[source].Reports[token] = r
}

// unsigned takes the provider from a source's reports of ETH: its kind has none.
func (f *Facts) unsigned(source int) {
	f.report(source, eth, func(r *Report) { r.Provider = chain.Address{} })
	f.Venue.Providers[chain.Address{}] = false
}

// Who reads that a source has no provider is not told to set one: its kind refuses the key.
func TestNoProviderIsAskedOfAKindWithoutOne(t *testing.T) {
	f := healthy()
	f.unsigned(1)
	findings, _ := Examine(f)
	for _, x := range findings {
		if strings.Contains(x.Fix, "`provider`") || !strings.Contains(x.Seen, "nobody signs") {
			t.Errorf("%s: %s", x.Seen, x.Fix)
		}
	}
	if len(findings) != 1 {
		t.Errorf("found %+v", findings)
	}
}

func names(found []Finding) string {
	var list []string
	for _, x := range found {
		list = append(list, map[Severity]string{Failure: "!"}[x.Severity]+x.Check)
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

// Every planted fault is found, by its check and by no other; and every check finds one.
func TestPlantedFaultsAreFound(t *testing.T) {
	found := map[string]bool{}
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			f := healthy()
			p.do(f)
			findings, _ := Examine(f)
			want := strings.Split(p.want, ",")
			slices.Sort(want)
			if got := names(findings); got != strings.Join(want, ",") {
				t.Errorf("found %q, want %q: %+v", got, p.want, findings)
			}
			for _, x := range findings {
				found[x.Check] = true
				if x.Seen == "" || x.Fix == "" || x.Area == "" {
					t.Errorf("it says too little: %+v", x)
				}
				if _, err := os.Stat(filepath.Join("../../..", x.Runbook)); err != nil {
					t.Errorf("%s names no runbook: %v", x.Check, err)
				}
			}
		})
	}
	for _, g := range groups {
		for _, c := range g.checks {
			if !found[c.name] {
				t.Errorf("no planted fault is found by %s", c.name)
			}
		}
	}
}

// What is configured wrongly is found before anything runs: of each planted fault, all but what only shows while the
// keeper runs. None but these gets past --pre.
func TestPlantedFaultsAreFoundBeforeTheStart(t *testing.T) {
	late := map[string]bool{}
	for _, g := range groups {
		for _, c := range g.checks {
			late[c.name] = c.late
		}
	}
	silent := 0
	for _, p := range planted {
		f := healthy()
		p.do(f)
		f.Pre, f.Topics, f.State = true, nil, nil
		found, _ := Examine(f)
		want := slices.DeleteFunc(strings.Split(p.want, ","),
			func(check string) bool { return late[strings.TrimPrefix(check, "!")] })
		slices.Sort(want)
		if got := names(found); got != strings.Join(want, ",") {
			t.Errorf("%s: found %q, want %q", p.name, got, want)
		}
		if len(found) == 0 {
			silent++
		}
	}
	t.Logf("%d of %d faults show before the start", len(planted)-silent, len(planted))
}

// Of a keeper without a fault nothing is said, before it runs and while it does, whether it is one of three, alone, a
// monitor, or a development keeper with one host and one source.
func TestHealthyKeepersHaveNoFindings(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"one of three": func(*Facts) {},
		"before it runs": func(f *Facts) {
			f.Pre, f.Topics, f.State = true, nil, nil
			f.Signers[0] = Signer{Address: ownSigner, Roles: f.Signers[0].Roles, Balance: f.Signers[0].Balance}
		},
		"alone": func(f *Facts) { f.Settings.Tier = tier.DefaultConfig() },
		"a monitor": func(f *Facts) {
			t := &f.Settings.Tier
			f.Settings.Monitor, t.Monitor, f.Settings.Signers, f.Signers, f.Keys, f.KeysAsked = true, true, nil,
				nil, nil, false
			t.Peers = append(t.Peers, tier.Peer{Tier: 2, Signers: []chain.Address{ownSigner}})
		},
		"a shadow": func(f *Facts) {
			f.Settings.Shadow, f.Keys, f.KeysAsked = true, nil, false
			f.Settings.Tier = tier.DefaultConfig()
			poor := chain.Uint{}
			f.Signers[0] = Signer{Address: ownSigner, Roles: f.Signers[0].Roles, Balance: &poor}
		},
		"in development": func(f *Facts) {
			f.Development, f.Settings.ChainID, f.Hosts, f.Sources, f.Machine.Operator = true, 1337, 1,
				f.Sources[:1], false
		},
		"each lane has a signer of its own": func(f *Facts) {
			other := f.Signers[0]
			other.Address, other.Roles = chain.Address{8},
				map[string]bool{"LIQUIDATION_KEEPER": true, "ADL_KEEPER": true}
			delete(f.Signers[0].Roles, "LIQUIDATION_KEEPER")
			delete(f.Signers[0].Roles, "ADL_KEEPER")
			f.Signers, f.Keys = append(f.Signers, other), append(f.Keys, other.Address)
			f.Settings.Signers = append(f.Settings.Signers, other.Address)
			f.Settings.Bindings = []Binding{{other.Address, []job.Lane{job.LiquidationLane}},
				{ownSigner, []job.Lane{job.OrderLane, job.MaintenanceLane}}}
		},
		"it stands in for a Master that is down": func(f *Facts) {
			f.State.Seen.Executed[1] = 3
			f.State.Seen.Ages[2] = []AgeCount{{time.Second, 20}, {30 * time.Second, 29}, {60 * time.Second, 30}}
		},
		"its record has begun, and no endpoint is an archive": func(f *Facts) {
			for i := range f.Endpoints {
				f.Endpoints[i].OldState = false
			}
		},
	} {
		f := healthy()
		change(f)
		found, areas := Examine(f)
		if len(found) > 0 || len(areas) != 8 {
			t.Errorf("%s: %+v, %+v", name, found, areas)
		}
	}
}

// What nobody could be asked for is no fault of everything that depends on it, and no panic.
func TestNothingIsKnown(t *testing.T) {
	found, _ := Examine(&Facts{Settings: healthy().Settings})
	if got := names(found); got != "!price-sources,!signer-keys,alert-route" {
		t.Errorf("found %s", got)
	}
	for _, away := range []func(*Facts){
		func(f *Facts) { f.Venue = nil }, func(f *Facts) { f.Signers[0].Roles, f.Signers[0].Balance = nil, nil },
		func(f *Facts) { f.Signers[0].Latest, f.Topics.Lag = nil, nil }, func(f *Facts) { f.Machine.Disks = nil },
	} {
		f := healthy()
		away(f)
		if found, _ := Examine(f); len(found) > 0 {
			t.Errorf("found %+v", found)
		}
	}
}

// Failures come before warnings within their area, and areas in their order.
func TestOrder(t *testing.T) {
	f := healthy()
	f.Hosts, f.Endpoints[2].Settled, f.State.Parked, f.State.Failed = 1, chain.Hash{8}, 1, 1
	found, areas := Examine(f)
	var order []string
	for _, x := range found {
		order = append(order, fmt.Sprint(x.Area, " ", x.Check))
	}
	want := "endpoints endpoint-agreement,endpoints endpoint-hosts,state state-liquidations,state state-delayed"
	if strings.Join(order, ",") != want || areas[0].Findings != 2 || areas[6].Findings != 2 || areas[1].Findings != 0 {
		t.Errorf("%v, %+v", order, areas)
	}
}

// What is said of a first block that is wrong is what the env file of a region says where it is set.
func TestStartBlockIsExplainedInOneWay(t *testing.T) {
	example, err := os.ReadFile("../../../deploy/compose/region.env.example")
	if err != nil {
		t.Fatal(err)
	}
	refused, err := os.ReadFile("../../scanner/data_store.go")
	if err != nil {
		t.Fatal(err)
	}
	const rule = "DataStore was created, or one after it and before the first market"
	refusal := strings.Join(strings.Fields(strings.ReplaceAll(string(refused), `"+`, "")), " ")
	if !strings.Contains(string(example), rule) || !strings.Contains(strings.ReplaceAll(refusal, ` "`, " "), rule) {
		t.Errorf("neither the example nor the scanner may say otherwise than %q", rule)
	}
	for _, p := range planted {
		f := healthy()
		p.do(f)
		found, _ := Examine(f)
		for _, x := range found {
			if x.Check == "venue-start-block" && !strings.Contains(x.Fix, rule) {
				t.Errorf("%s: %s", p.name, x.Fix)
			}
		}
	}
}

// What a fix tells somebody to look at is where it can be seen, and what it tells him to do is possible.
func TestFixesLeadToTheRightPlace(t *testing.T) {
	wanted := map[string]string{
		"a webhook is not told": "logs console", "other partitions": "docs/runbooks/partitions.md",
		"a state of other partitions": "docs/runbooks/partitions.md",
	}
	seen := 0
	for _, p := range planted {
		want, is := wanted[p.name]
		if !is {
			continue
		}
		seen++
		f := healthy()
		p.do(f)
		if findings, _ := Examine(f); len(findings) != 1 || !strings.Contains(findings[0].Fix, want) {
			t.Errorf("%s: %+v does not lead to %s", p.name, findings, want)
		}
	}
	if seen != len(wanted) {
		t.Errorf("%d of %d faults are planted", seen, len(wanted))
	}
}
