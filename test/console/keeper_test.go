//go:build browser

package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/rs/zerolog"
	"golang.org/x/crypto/bcrypt"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/test/programs"
	"perpkeeper/test/rig"
)

// These bound every wait. They are a guard against hanging, no statement about speed.
const (
	patience     = 6 * time.Minute
	pagePatience = 2 * time.Minute // of a page and its updates
)

// keeper is the Master of a running demo, with what the test asks it.
type keeper struct {
	*demo.Stack
	*demo.Keeper

	t      *testing.T
	db     *pg.DB
	client *bus.Client
	chain  *rpc.Client
	topics wire.Config
}

// start brings the demo up and waits until every process is ready.
func start(t *testing.T) *keeper {
	t.Helper()
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	settings := demo.DefaultConfig().Demo
	settings.Binaries = folder
	s := demo.New(settings, zerolog.Nop())
	s.Console, s.Resting = true, true
	k := &keeper{Stack: s, Keeper: s.Keepers[0], t: t, topics: wire.DefaultConfig()}
	k.topics.ChainID = settings.ChainID
	t.Cleanup(k.stop)
	k.must(s.Start(context.Background(), func(string) {}))
	k.db = rig.Postgres(t, k.Postgres)
	kafka := bus.DefaultConfig()
	kafka.Brokers = k.Brokers
	k.client = rig.Kafka(t, kafka)
	k.chain, err = rpc.DialContext(t.Context(), s.Devnet.RPC)
	k.must(err)
	k.must(s.AwaitReady(t.Context(), s.Keepers...))
	k.must(s.Devnet.Trade(t.Context(), true))
	return k
}

// in is the keeper for a subtest.
func (k *keeper) in(t *testing.T) *keeper {
	one := *k
	one.t = t
	return &one
}

func (k *keeper) stop() {
	if k.t.Failed() {
		for _, one := range k.Keepers {
			for _, p := range one.Processes {
				k.t.Logf("--- the end of the log of %s's %s:\n%s", one.Name(), p.Name, p.Tail(8))
			}
		}
	}
	if k.chain != nil {
		k.chain.Close()
	}
	if err := k.Close(); err != nil {
		k.t.Errorf("stopping: %v", err)
	}
}

func (k *keeper) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// await polls until a condition holds.
func (k *keeper) await(what string, holds func() bool) {
	k.t.Helper()
	hung := time.NewTimer(patience)
	defer hung.Stop()
	for tick := time.NewTicker(100 * time.Millisecond); !holds(); {
		select {
		case err := <-k.Failed():
			k.t.Fatalf("%s: a process failed: %v", what, err)
		case <-hung.C:
			k.t.Fatalf("%s: not after %s", what, patience)
		case <-tick.C:
		}
	}
}

// devnet tells the chain what to do, as the program of the name does.
func (k *keeper) devnet(method string, arguments ...any) {
	k.t.Helper()
	var answer any
	k.must(k.chain.CallContext(k.t.Context(), &answer, method, arguments...))
}

// user adds a line to the file of who may sign in, as an operator would.
func (k *keeper) user(name, role string) {
	k.t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	k.must(err)
	users, err := os.OpenFile(k.ConsoleUsers(), os.O_APPEND|os.O_WRONLY, 0)
	k.must(err)
	_, err = fmt.Fprintf(users, "%s %s %s\n", name, role, hash)
	k.must(errors.Join(err, users.Close()))
}

// recorded are the entries of what the console did, oldest first, without sign-ins.
func (k *keeper) recorded() (all []pg.ConsoleAction) {
	k.t.Helper()
	entries, err := k.db.ConsoleActions().List(k.t.Context(), 0, 1000)
	k.must(err)
	for _, e := range slices.Backward(entries) {
		if e.Action != "sign in" && e.Action != "sign out" {
			all = append(all, e)
		}
	}
	return all
}

// signers are the keeper's own.
func (k *keeper) signers() []txstore.SignerStatus {
	k.t.Helper()
	all, err := txstore.NewSigners(k.db).List(k.t.Context())
	k.must(err)
	return all
}

// executed returns a job of a kind that this keeper has executed.
func (k *keeper) executed(kind job.Kind) (attempt txstore.ListedAttempt) {
	k.t.Helper()
	k.await("an executed "+string(kind), func() bool {
		attempts, err := txstore.NewIntents(k.db).EndedAttempts(k.t.Context(), kind, job.Done,
			time.Now().Add(time.Hour), 1)
		k.must(err)
		if len(attempts) > 0 {
			attempt = attempts[0]
		}
		return len(attempts) > 0
	})
	return attempt
}

// inFlight returns a number of a signer whose transaction no block has yet.
func (k *keeper) inFlight() (signer chain.Address, number uint64, found bool) {
	k.t.Helper()
	for _, s := range k.signers() {
		numbers, err := txstore.NewSigners(k.db).Numbers(k.t.Context(), s.Signer, s.NextNonce-min(s.NextNonce, 20), 20)
		k.must(err)
		for _, n := range numbers {
			if n.Intent.Replaceable() {
				return s.Signer, n.Nonce, true
			}
		}
	}
	return signer, 0, false
}

// postpone makes a delayed job, a report of a day, that is due in a while, and returns its number.
func (k *keeper) postpone(key string, in time.Duration) int64 {
	k.t.Helper()
	_, err := k.db.Delayed().Add(k.t.Context(), delayed.Appointment{Kind: delayed.DailyReport, Key: key,
		Payload: map[string]string{}, DueAt: time.Now().Add(in)})
	k.must(err)
	all, err := k.db.Delayed().List(k.t.Context(), "", "", 100)
	k.must(err)
	i := slices.IndexFunc(all, func(j delayed.Job) bool { return j.Key == key })
	if i < 0 {
		k.t.Fatalf("%s is not there", key)
	}
	return all[i].ID
}

// giveUp writes a dead letter of a job that a planner published, as a sender does that gives it up.
func (k *keeper) giveUp() {
	k.t.Helper()
	topic, ctx := wire.JobTopic(k.topics.ChainID), k.t.Context()
	for p := range k.topics.JobPartitions {
		for _, r := range rig.Records(k.t, k.client, topic, p) {
			given, err := wire.DecodeJob(r)
			k.must(err)
			letter, err := wire.Encode([]byte(topic), wire.Job{Job: given}, 0, 0)
			k.must(err)
			for _, h := range [][2]string{{"source.key", string(given.Signer[:])}, {"source.partition", "0"},
				{"job", given.ID}, {"attempt", "1"}, {"outcome", string(job.Refused)},
				{"error", "the venue says OrderNotFulfillableAtAcceptablePrice"}} {
				letter.Headers = append(letter.Headers, bus.Header{Key: h[0], Value: []byte(h[1])})
			}
			_, err = k.client.Producer(wire.DeadLetterTopic(k.topics.ChainID)).Produce(ctx, 0, []bus.Record{letter})
			k.must(err)
			return
		}
	}
	k.t.Fatal("no job was published")
}

// scriptOf reads axe-core, whose file the environment names.
func scriptOf(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("CONSOLE_AXE"))
	if err != nil {
		t.Fatalf("reading axe-core (run make console-test): %v", err)
	}
	return string(text)
}
