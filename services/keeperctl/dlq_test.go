package keeperctl

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/services/statevm"
	"perpkeeper/test/rig"
)

// office is a keeper's topics and database.
type office struct {
	deadLetters

	t     *testing.T
	kafka bus.Config
	db    *pg.DB
}

func newOffice(t *testing.T) *office {
	t.Helper()
	cfg := bus.DefaultConfig()
	cfg.Brokers = rig.Broker(t).Addrs()
	client := rig.Kafka(t, cfg)
	o := &office{t: t, kafka: cfg, db: pgtest.DB(t)}
	o.deadLetters = deadLetters{Topic: deadletter.Topic{Client: client, State: o.db, Keeper: wire.DefaultConfig()},
		limit: 50}
	rig.Ensure(t, client, o.Keeper.Topics()...)
	return o
}

// told runs a command line and returns what it printed, or its error after "error: ".
func (o *office) told(line string) string {
	o.t.Helper()
	var out strings.Builder
	d := o.deadLetters
	d.out = printer{Writer: &out}
	if err := d.run(o.t.Context(), strings.Fields(line)); err != nil {
		return out.String() + "error: " + err.Error()
	}
	return out.String()
}

func (o *office) write(letter bus.Record) {
	o.t.Helper()
	if _, err := o.Client.Producer(wire.DeadLetterTopic(o.Keeper.ChainID)).
		Produce(o.t.Context(), 0, []bus.Record{letter}); err != nil {
		o.t.Fatal(err)
	}
}

// stand lets the state stand at a block of the given chain time.
func (o *office) stand(timeMs uint64) chain.BlockRef {
	o.t.Helper()
	block := chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}, TimeMs: timeMs}
	pgtest.Hold(o.t, o.db, block)
	return block
}

// said reads all that was said on the job topic.
func (o *office) said() (all []job.Job) {
	o.t.Helper()
	topic := wire.JobTopic(o.Keeper.ChainID)
	for partition := range o.Keeper.JobPartitions {
		first, end, err := o.Client.Bounds(o.t.Context(), topic, partition)
		if err != nil {
			o.t.Fatal(err)
		}
		for r := o.Client.Reader(topic, partition, first); r.Offset() < end; {
			record, err := r.Next(o.t.Context())
			if err != nil {
				o.t.Fatal(err)
			}
			m, _, err := wire.Decode(record)
			if err != nil {
				o.t.Fatal(err)
			}
			j := m.(wire.Job).Job
			if wire.SignerPartition(j.Signer, o.Keeper.JobPartitions) != partition ||
				string(record.Key) != string(j.Signer[:]) || len(record.Headers) != 4 {
				o.t.Errorf("%s is in partition %d under %x with %v", j.ID, partition, record.Key, record.Headers)
			}
			all = append(all, j)
		}
	}
	return all
}

func lostJob(n byte) job.Job {
	key := chain.Hash{n}
	return job.Job{
		ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Account: chain.Address{n}, Class: job.ClassMarketOrder,
		DueSinceMs: 5, Signer: chain.Address{0xa, n},
		Tokens: []chain.Address{{1}},
		Evidence: job.Evidence{Block: chain.BlockRef{Number: 3, Hash: chain.Hash{3}, TimeMs: 3_000}, Generation: 1,
			Reason: "due"},
	}
}

// givenUp is the letter a sender writes about a job.
func (o *office) givenUp(j job.Job, attempt int) bus.Record {
	o.t.Helper()
	r, err := wire.Encode([]byte(wire.JobTopic(o.Keeper.ChainID)), wire.Job{Job: j}, 0, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	return withHeaders(r, "source.partition", strconv.Itoa(wire.SignerPartition(j.Signer, o.Keeper.JobPartitions)),
		"source.key", string(j.Signer[:]),
		"job", j.ID, "attempt", strconv.Itoa(attempt), "outcome", "refused", "tx", "",
		"error", "no node takes it\nreally")
}

// unknownEvent is the letter a statevm writes about a log.
func (o *office) unknownEvent() bus.Record {
	return withHeaders(bus.Record{Key: []byte(wire.LogTopic(o.Keeper.ChainID)), Value: []byte{0xff}}, "t", "LOG", "sv",
		"\x00\x63",
		"source.partition", "2", "source.offset", "17", "source.key", "", "error", "unknown event Surprise")
}

func withHeaders(r bus.Record, pairs ...string) bus.Record {
	for pair := range slices.Chunk(pairs, 2) {
		r.Headers = append(r.Headers, bus.Header{Key: pair[0], Value: []byte(pair[1])})
	}
	return r
}

func TestDeadLettersAreListedAndShown(t *testing.T) {
	o := newOffice(t)
	wantTold(t, o.told("list"), "no dead letters")
	o.write(o.givenUp(lostJob(1), 4))
	o.write(o.unknownEvent())
	o.write(o.givenUp(lostJob(2), 1))
	lines := strings.Split(o.told("list"), "\n")
	for i, want := range []string{
		"offset at source place about error", "2 20", "1 20", "0 20",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
	wantTold(t, lines[2], "perp.56.log.v1", "2/17", "LOG", "unknown event Surprise")
	wantTold(t, lines[3], "perp.56.job.v1", lostJob(1).ID+" attempt 4", "refused: no node takes it")
	if got := o.told("list log"); strings.Contains(got, "job.v1") || !strings.Contains(got, "Surprise") {
		t.Errorf("of the log topic there is\n%s", got)
	}
	if got := o.told("list perp.56.job.v1"); strings.Count(got, "\n") != 3 || strings.Contains(got, "Surprise") {
		t.Errorf("of the job topic there is\n%s", got)
	}
	o.limit = 1
	wantTold(t, o.told("list"), lostJob(2).ID, "2 more")
	wantTold(t, o.told("show 0"), `"ID": "`+lostJob(1).ID, `"error": "no node takes it\nreally"`, `"sv": "0x0001"`,
		`"key": "perp.56.job.v1"`)
	wantTold(t, o.told("show 1"), `"notDecoded": "record at partition 0, offset 1: LOG of schema version 99`,
		`"value": "0xff"`)
	wantTold(t, o.told("show 3"), "error: there is no dead letter 3")
	wantTold(t, o.told("show x"), `error: "x" is no offset`)
	wantTold(t, o.told("list jobs"), `error: "jobs" is no topic of this keeper`)
	for _, line := range []string{"", "show", "replay", "list a b", "dance"} {
		wantTold(t, o.told(line), "error: usage: keeperctl dlq list")
	}
}

// What statevm writes is what is shown. (What a sender writes is demanded, header by header, of the sender.)
func TestLettersOfStatevmAreShown(t *testing.T) {
	o := newOffice(t)
	record := withHeaders(bus.Record{Key: []byte("k"), Value: []byte{1}}, "t", "NEWS", "sv", "\x00\x01")
	if _, err := o.Client.Producer(wire.LogTopic(o.Keeper.ChainID)).
		Produce(t.Context(), 2, []bus.Record{record}); err != nil {
		t.Fatal(err)
	}
	cfg := statevm.DefaultConfig()
	cfg.Keeper, cfg.Kafka = o.Keeper, o.kafka
	machine := statevm.New(cfg, zerolog.Nop(), statevm.NewMetrics(prometheus.NewRegistry()), o.Client, o.db)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = machine.Run(ctx) })
	defer running.Wait()
	defer stop()
	const hangGuard = 90 * time.Second
	waiting, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	if _, err := o.Client.Reader(wire.DeadLetterTopic(o.Keeper.ChainID), 0, 0).Next(waiting); err != nil {
		t.Fatal(err)
	}
	wantTold(t, o.told("list log"), "perp.56.log.v1  2/0", "NEWS", `kind "NEWS": unknown record`)
	wantTold(t, o.told("show 0"), `"source.key": "k"`, `"notDecoded": "`, `"value": "0x01"`)
	wantTold(t, o.told("replay 0"), "error: only jobs are replayed")
}

// LIQ-10: an operator has a job done that was given up. It goes back as it was, but for the block it is known from:
// what was known before the attempt ended says nothing, and a sender passes over it.
func TestReplayedJobIsTakenUp(t *testing.T) {
	o := newOffice(t)
	j := lostJob(1)
	if err := txstore.NewLeases(o.db).Register(t.Context(), j.Signer, 56); err != nil {
		t.Fatal(err)
	}
	o.giveUp(j, 40_000)
	o.write(o.givenUp(j, 1))
	wantTold(t, o.told("replay 0"), "error: the state has no block yet")
	if admission, err := txstore.NewIntents(o.db).Enqueue(t.Context(), j); err != nil || admission != txm.Cooling {
		t.Fatalf("the record as it was is %s, %v: then it need not be changed", admission, err)
	}
	block := o.stand(50_000)
	wantTold(t, o.told("replay 0"),
		j.ID+": partition "+fmt.Sprint(wire.SignerPartition(j.Signer, o.Keeper.JobPartitions)),
		"1 said again as of block 7",
		"30s", "perp.56.result.v1")
	said := o.said()
	want := j
	want.Evidence.Block = chain.BlockRef{Number: block.Number, Hash: block.Hash, Parent: said[0].Evidence.Block.Parent,
		TimeMs: block.TimeMs}
	if len(said) != 1 || !reflect.DeepEqual(said[0], want) {
		t.Fatalf("said %+v, want %+v", said, want)
	}
	for _, want := range []txm.Admission{txm.NewAttempt, txm.Refreshed} {
		if admission, err := txstore.NewIntents(o.db).Enqueue(t.Context(), said[0]); err != nil || admission != want {
			t.Errorf("the job is %s, want %s, %v", admission, want, err)
		}
	}
}

// giveUp has a sender take a job up and end it.
func (o *office) giveUp(j job.Job, retryAfterMs uint64) {
	o.t.Helper()
	f, err := txstore.NewLeases(o.db).Acquire(o.t.Context(), j.Signer, lease.NewOwner("sender"), time.Minute)
	if err != nil {
		o.t.Fatal(err)
	}
	if _, err := txstore.NewIntents(o.db).Enqueue(o.t.Context(), j); err != nil {
		o.t.Fatal(err)
	}
	heads, err := txstore.NewIntents(o.db).Heads(o.t.Context(), j.Signer, txm.Pick{Limit: 1})
	if err != nil || len(heads) != 1 {
		o.t.Fatal(heads, err)
	}
	end := txm.Ending{Verdict: txm.Verdict{Outcome: job.Refused, Reason: "no"},
		Rest: txm.Rest{RetryAfterMs: retryAfterMs, GivenUp: true}}
	if err := txstore.NewIntents(o.db).Skip(o.t.Context(), f, heads[0].ID, end); err != nil {
		o.t.Fatal(err)
	}
}

func TestReplayOfASource(t *testing.T) {
	o := newOffice(t)
	o.stand(50_000)
	first, second := lostJob(1), lostJob(2)
	o.write(o.givenUp(first, 1))
	o.write(o.unknownEvent())
	o.write(o.givenUp(second, 1))
	first.Evidence.Reason = "due once more"
	o.write(o.givenUp(first, 2))
	for _, line := range []string{"replay log", "replay 1", "replay perp.56.price.v1"} {
		wantTold(t, o.told(line), "error: only jobs are replayed", "keeperctl rebuild")
	}
	wantTold(t, o.told("replay 9"), "error: there is no dead letter 9")
	if len(o.said()) != 0 {
		t.Error("a refused replay said something")
	}
	wantTold(t, o.told("replay job"), first.ID, second.ID, "2 said again")
	said := o.said()
	slices.SortFunc(said, func(a, b job.Job) int { return strings.Compare(a.ID, b.ID) })
	if len(said) != 2 || said[0].ID != first.ID || said[0].Evidence.Reason != "due once more" ||
		said[1].ID != second.ID {
		t.Errorf("said %+v", said)
	}
	broken := o.givenUp(second, 3)
	at := slices.IndexFunc(broken.Headers, func(h bus.Header) bool { return h.Key == "source.key" })
	broken.Headers[at].Value = []byte{1}
	o.write(broken)
	wantTold(t, o.told("replay 4"), "error: replaying letter 4: its key 01 is not the job's signer")
}
