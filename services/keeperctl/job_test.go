package keeperctl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// storied is a keeper with one order: another tier executed it after this one had sent.
type storied struct {
	*bench
	*office

	s     *session
	fence lease.Fence
	key   chain.Hash
	id    string
	made  perp.Stamp
	done  perp.Stamp
	hash  chain.Hash
}

func newStoried(t *testing.T) *storied {
	t.Helper()
	y := &storied{bench: newBench(t), office: newOffice(t), key: chain.Hash{1}, hash: chain.Hash{0xcc}}
	y.id = job.OrderID(y.key, 1)
	now := uint64(time.Now().UnixMilli())
	y.made = perp.Stamp{Block: 5, Log: 3, TxHash: chain.Hash{0xaa}, TimeMs: now - 40_000}
	y.done = perp.Stamp{Block: 6, Log: 9, TxHash: y.hash, TimeMs: now - 500}
	y.s = &session{Config: defaultConfig()}
	y.s.Kafka, y.s.Postgres.URL = y.kafka, secret.MustURL(y.address)
	y.fence = y.attend()
	y.claim(y.fence, 0)
	return y
}

func (y *storied) publish(topic string, key []byte, m wire.Message) {
	y.bench.t.Helper()
	r, err := wire.Encode(key, m, 0, 0)
	y.must(err)
	_, err = y.Client.Producer(topic).Produce(y.bench.t.Context(), 0, []bus.Record{r})
	y.must(err)
}

// fold has the state know the order and who executed it.
func (y *storied) fold(changes ...perp.Row) {
	y.bench.t.Helper()
	pgtest.Hold(y.bench.t, y.bench.db, chain.BlockRef{Number: 6, Hash: chain.Hash{6}, Parent: chain.Hash{5}},
		changes...)
}

func (y *storied) ask(args ...string) (string, string, int) {
	t := y.bench.t
	t.Setenv("PERPKEEPER_POSTGRES_URL", y.address)
	t.Setenv("PERPKEEPER_KAFKA_BROKERS", strings.Join(y.kafka.Brokers, ","))
	file := filepath.Join(t.TempDir(), "keeper.toml")
	y.must(os.WriteFile(file, fmt.Appendf(nil, "[tier]\nenabled = true\npriority = 2\n[[tier.peers]]\ntier = 1\n"+
		"signers = [%q]\n", chain.Address{0xbe}.Hex()), 0o600))
	return run(t, nil, append([]string{"job", "--all", "--config", file}, args...)...)
}

// One job is told from its log to its result, whatever it is named by: what this keeper stored and sent, what planners
// said, and who executed it in the end.
func TestJobStory(t *testing.T) {
	y := newStoried(t)
	dueSince := y.made.TimeMs
	j := wire.Job{Job: job.Job{ID: y.id, Kind: job.Order, Key: y.key, Account: chain.Address{0xac},
		Class:  job.ClassMarketOrder,
		Signer: y.signer, DueSinceMs: dueSince, Evidence: job.Evidence{Reason: "market order\x1b[2J",
			Reports: []string{chain.Address{0x99}.Hex() + "@1800000000123"}}}}
	y.publish(wire.PriceTopic(y.s.Keeper.ChainID), nil, wire.Price{Token: chain.Address{0x99}, Min: chain.U64(41),
		Max: chain.U64(42), TimeMs: 1_800_000_000_123, Source: "streams\x1b[1m"})
	topic := wire.JobTopic(y.s.Keeper.ChainID)
	y.publish(topic, y.signer[:], j)
	y.publish(topic, y.signer[:], j)
	j.DueSinceMs += 20_000
	y.publish(topic, y.signer[:], j) // renewed
	y.publish(wire.LogTopic(y.s.Keeper.ChainID), y.key[:], wire.Log{Log: chain.Log{Block: 5, Index: 3,
		Topics: []chain.Hash{{1}}}})
	y.publish(wire.ResultTopic(y.s.Keeper.ChainID), y.key[:], wire.Result{Result: job.Result{JobID: y.id, Attempt: 1,
		Kind: job.Order, Key: y.key, Outcome: job.LostRace, Reason: "somebody was first"}})
	y.fold(perp.Order{Key: y.key, Account: chain.Address{0xac}, Status: perp.Executed, Changes: 1, Birth: y.made,
		Stamp: y.done},
		perp.Transaction{Tx: chain.Tx{Hash: y.hash, From: chain.Address{0xbe}, Nonce: 77, Block: 6, OK: true,
			GasUsed:  2,
			GasPrice: 5}, Stamp: y.done})
	mine := chain.Hash(y.pay(0).Hash())
	for _, name := range []string{y.id, y.key.Hex(), mine.Hex(), y.hash.Hex()} {
		out, complaint, code := y.ask(name)
		if code != exitFine || complaint != "" {
			t.Fatalf("%s: exit code %d, %s%s", name, code, out, complaint)
		}
		text := strings.Join(strings.Fields(out), " ")
		for _, want := range []string{
			"made block 5 log 3, perp.56.log.v1 0/0 order", "said due perp.56.job.v1 0/0 market order\\u001b[2J; born",
			"price report perp.56.price.v1 0/0 $0.0000000000000000000000000000",
			"streams\\u001b[1m", "said 2 times, last at 0/1",
			"renewed perp.56.job.v1 0/2", "admitted keeper.tx_intent 1",
			"signed tx " + mine.Hex(), "nonce 0, exec", "result perp.56.result.v1 0/0 lost_race: somebody was first",
			"changed block 6 log 9", "tier 1's signer", "the order is Executed", "nonce 77, gas 2",
			"now keeper.tx_intent 1 SIGNED",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, out)
			}
		}
		if strings.Index(text, "made block") > strings.Index(text, "changed block") {
			t.Errorf("%s: not in the order of time:\n%s", name, out)
		}
	}
}

// Without --all a story is read in ten lines. Programs get every step all the same.
func TestJobSummary(t *testing.T) {
	y := newStoried(t)
	y.fold(perp.Order{Key: y.key, Account: chain.Address{0xac}, Status: perp.Executed, Changes: 1, Birth: y.made,
		Stamp: y.done},
		perp.Transaction{Tx: chain.Tx{Hash: y.hash, From: chain.Address{0xbe}, Nonce: 77, Block: 6, OK: true,
			GasUsed: 2, GasPrice: 5e9}, Stamp: y.done})
	out, complaint, code := y.ask("--all=false", y.id)
	if lines := strings.Count(strings.TrimSpace(out), "\n") + 1; code != exitFine || complaint != "" || lines > 13 {
		t.Errorf("exit code %d, %d lines, %s%s", code, lines, out, complaint)
	}
	wantTold(t, strings.Join(strings.Fields(out), " "), "job order", "sent not yet",
		"closed by tier 1's signer "+chain.Address{0xbe}.Hex(), "block 6, gas price 5 Gwei, tx "+y.hash.Hex(),
		"result signed", "every step: --all")
	out, _, _ = y.ask("--all=false", "--output", "json", y.id)
	wantTold(t, out, `"what": "admitted"`, `"what": "changed"`)
}

// The story of a job that another region executed, after this one's transaction was replaced by one that only frees the
// nonce, tells both, and who it was in the end.
func TestJobExecutedByAnotherRegion(t *testing.T) {
	y := newStoried(t)
	freeing := chain.Hash{0xdd}
	inFlight, err := txstore.NewIntents(y.bench.db).InFlight(t.Context(), y.signer)
	y.must(err)
	y.must(txstore.NewIntents(y.bench.db).Replace(t.Context(), y.fence, txm.Replacement{
		Intent: inFlight[0].Intent.ID, After: inFlight[0].Newest().Hash, Kind: txm.Cancel,
		Tx:     txm.SignedTx{Nonce: 0, Gas: txm.EmptyGas, Tip: 2, Cap: 2, Hash: freeing, Raw: []byte{2}},
		Cancel: txm.Verdict{Outcome: job.LostRace, Reason: "its window has passed, and the Master executed it"},
	}))
	y.fold(perp.Order{Key: y.key, Account: chain.Address{0xac}, Status: perp.Executed, Changes: 1, Birth: y.made,
		Stamp: y.done},
		perp.Transaction{Tx: chain.Tx{Hash: y.hash, From: chain.Address{0xbe}, Nonce: 77, Block: 6, OK: true},
			Stamp: y.done})
	y.wantStory(y.id, "signed tx "+chain.Hash(y.pay(0).Hash()).Hex(), "nonce 0, exec", "signed again tx "+freeing.Hex(),
		"nonce 0, cancel", "by tx "+y.hash.Hex()+" tier 1's signer", "the order is Executed")
}

// The story of an order that its owner cancelled while our transaction was in flight says whose ended it, and that ours
// is still out.
func TestJobCancelledByItsOwnerInFlight(t *testing.T) {
	y := newStoried(t)
	y.claim(y.fence, 1)
	cancelled, owner, withdrawn := chain.Hash{2}, chain.Address{0xac}, y.done
	withdrawn.TxHash = chain.Hash{0xee}
	y.fold(perp.Order{Key: cancelled, Account: owner, Status: perp.Cancelled, Reason: "USER_INITIATED_CANCEL",
		Changes: 1, Birth: y.made, Stamp: withdrawn},
		perp.Transaction{Tx: chain.Tx{Hash: withdrawn.TxHash, From: owner, Nonce: 3, Block: 6, OK: true},
			Stamp: withdrawn})
	y.wantStory(job.OrderID(cancelled, 1), "the order is Cancelled: USER_INITIATED_CANCEL",
		owner.Hex()+", which is no keeper that is configured", "now keeper.tx_intent 2 SIGNED")
}

// wantStory asks for a job and demands what is to be told of it.
func (y *storied) wantStory(id string, parts ...string) {
	t := y.bench.t
	t.Helper()
	out, complaint, code := y.ask(id)
	if code != exitFine || complaint != "" {
		t.Fatalf("exit code %d, %s%s", code, out, complaint)
	}
	wantTold(t, strings.Join(strings.Fields(out), " "), parts...)
}

// The story of a job that was born twice more, as nobody executed it, tells each due time with its place, what each
// check said of it before it got its nonce, by whom and as of which block, and that another sender of this keeper took
// its signer over while its transaction was under way. Ages are since the due time that was the newest then.
func TestJobRenewedTwiceAndTakenOverMidWay(t *testing.T) {
	y := newStoried(t)
	first := y.made.TimeMs - 600_000
	j := wire.Job{Job: job.Job{ID: y.id, Kind: job.Order, Key: y.key, Class: job.ClassMarketOrder, Signer: y.signer}}
	topic := wire.JobTopic(y.s.Keeper.ChainID)
	for n := range uint64(3) {
		j.DueSinceMs = first + 300_000*n
		y.publish(topic, y.signer[:], j)
	}
	inFlight, err := txstore.NewIntents(y.bench.db).InFlight(t.Context(), y.signer)
	y.must(err)
	intent, at := inFlight[0].Intent.ID, time.Now()
	y.must(txstore.NewCheckLog(y.bench.db).Save(t.Context(), []checklog.Entry{
		{Intent: intent, At: at, Check: checklog.Gate, Verdict: "closed", Detail: "the head is 4s old",
			By: "this keeper"},
		{Intent: intent, At: at, Check: checklog.Pending, Verdict: "proceed", By: "this keeper", Block: 41},
		{Intent: intent, At: at, Check: checklog.Price, Verdict: "proceed", Detail: "reports a@1\x1b[2J",
			By: "streams"},
		{Intent: intent, At: at, Check: checklog.Call, Verdict: "proceed", Detail: "the simulated call succeeds",
			By: "https://a/, https://b/", Block: 42},
		{Intent: intent + 1, At: at, Check: checklog.Call, Verdict: "proceed", Detail: "of another attempt"},
	}))
	y.must(txstore.NewLeases(y.bench.db).Release(t.Context(), y.fence))
	second, err := txstore.NewLeases(y.bench.db).Acquire(t.Context(), y.signer, lease.NewOwner("sender-b"), time.Minute)
	y.must(err)
	y.must(txstore.NewIntents(y.bench.db).Replace(t.Context(), second, txm.Replacement{Intent: intent,
		After: inFlight[0].Newest().Hash, Kind: txm.Exec,
		Tx: txm.SignedTx{Nonce: 0, Gas: 1, Tip: 2, Cap: 2, Hash: chain.Hash{0xdd}, Raw: []byte{2}}}))
	y.wantStory(y.id, "said due perp.56.job.v1 0/0", "renewed perp.56.job.v1 0/1", "renewed perp.56.job.v1 0/2",
		fmt.Sprintf("checked keeper.preflight_check of %d gate, closed: the head is 4s old; says this keeper", intent),
		fmt.Sprintf("checked keeper.preflight_check of %d, block 41 pending, proceed; says this keeper", intent),
		"price, proceed: reports a@1\\u001b[2J; says streams",
		fmt.Sprintf("of %d, block 42 call, proceed: the simulated call succeeds; says https://a/, https://b/", intent),
		"taken over keeper.tx_intent 1 another sender holds signer "+y.signer.Hex()+" now: lease term 2, after 1",
		"signed again tx "+chain.Hash{0xdd}.Hex()+" nonce 0, exec", "lease term 2")
	out, _, _ := y.ask(y.id)
	if strings.Contains(out, "of another attempt") || strings.Contains(out, " 10m") {
		t.Errorf("it tells of another attempt, or ages since the first of three due times:\n%s", out)
	}
}

// What nobody knows is said to be unknown, and what is no name of a job is refused.
func TestJobUnknown(t *testing.T) {
	y := newStoried(t)
	if out, complaint, code := y.ask(chain.Hash{0x77}.Hex()); code != exitFindings || out != "" ||
		!strings.Contains(complaint, "nothing is known of it here") {
		t.Errorf("exit code %d, %s%s", code, out, complaint)
	}
	for _, text := range []string{"0x12", "order"} {
		if _, complaint, code := y.ask(text); code != exitNotAsked || !strings.Contains(complaint, "is no job") {
			t.Errorf("%s: exit code %d, %s", text, code, complaint)
		}
	}
}
