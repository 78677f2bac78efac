package txstore_test

import (
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/txm"
)

// holder is one sender process that owns the only signer, with queued intents.
type holder struct{ txstoretest.Holder }

func newHolder(t *testing.T, jobs int) holder {
	t.Helper()
	return holder{txstoretest.New(t, jobs)}
}

// takenOver ends the holder's lease the way a successor does: expired, then token and owner changed, but not committed
// yet.
func (d holder) takenOver(t *testing.T) (commit func()) {
	t.Helper()
	successor := begin(t, d.Address)
	run(t, successor,
		`UPDATE keeper.signer_lease SET fencing_token = fencing_token + 1, owner = gen_random_uuid(), updated_at =
			clock_timestamp()`)
	return func() {
		t.Helper()
		if err := successor.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The guard is a lock: a write that meets a takeover under way waits for it and is refused.
func TestWriteWaitsForATakeover(t *testing.T) {
	receipt := func(d holder, n uint64) txm.Receipt {
		return txm.Receipt{TxHash: d.Claim(d.Intents[0], n, 0).Claims[0].Tx.Hash,
			Block: chain.BlockRef{Number: 1, Hash: chain.Hash{1}}, Outcome: job.Done}
	}
	for name, write := range map[string]func(holder) error{
		"claim": func(d holder) error {
			return txstore.NewIntents(d.DB).
				Claim(t.Context(), d.Fence, d.Claim(d.Intents[1], 1, 1))
		},
		"skip": func(d holder) error {
			return txstore.NewIntents(d.DB).Skip(t.Context(), d.Fence, d.Intents[1],
				txm.Ending{Verdict: txm.Verdict{Outcome: job.SkippedDone}})
		},
		"noted": func(d holder) error {
			return txstore.NewIntents(d.DB).Noted(t.Context(), d.Fence, receipt(d, 0).TxHash, "accepted", true)
		},
		"record": func(d holder) error { return txstore.NewIntents(d.DB).Record(t.Context(), d.Fence, receipt(d, 0)) },
		"nonce_lost": func(d holder) error {
			return txstore.NewIntents(d.DB).NonceLost(t.Context(), d.Fence, d.Intents[0],
				txm.Ending{Verdict: txm.Verdict{Outcome: job.Foreign}})
		},
		"pause": func(d holder) error { return txstore.NewIntents(d.DB).Pause(t.Context(), d.Fence, "x") },
		"take over": func(d holder) error {
			_, err := txstore.NewLeases(d.DB).TakeOver(t.Context(), d.Fence, 9)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newHolder(t, 2)
			d.MustClaim(t, d.Intents[0], 0, 0)
			commit := d.takenOver(t)
			done := make(chan error, 1)
			go func() { done <- write(d) }()
			awaitBlocked(t, d.Address, "sender")
			commit()
			if err := <-done; !lease.Lost(err) {
				t.Errorf("got %v, want to be fenced out", err)
			}
		})
	}
}

// And the other way round: a takeover waits for a write under way, so that nothing of the old owner lands after it.
func TestTakeoverWaitsForAWrite(t *testing.T) {
	d := newHolder(t, 1)
	tx := d.MustClaim(t, d.Intents[0], 0, 0)
	obstacle := begin(t, d.Address)
	run(t, obstacle, `SELECT FROM keeper.tx_intent WHERE id = $1 FOR UPDATE`, d.Intents[0])
	recorded := make(chan error, 1)
	go func() {
		recorded <- txstore.NewIntents(d.DB).
			Record(t.Context(), d.Fence, txm.Receipt{TxHash: tx.Hash, Block: chain.BlockRef{Hash: chain.Hash{1}},
				Outcome: job.Done})
	}()
	awaitBlocked(t, d.Address, "sender")
	successor := begin(t, d.Address)
	run(t, successor, `SET LOCAL lock_timeout = '200ms'`)
	if _, err := successor.Exec(t.Context(),
		`UPDATE keeper.signer_lease SET fencing_token = fencing_token + 1`); err == nil {
		t.Error("the lease was taken over in the middle of its owner's write")
	}
	if err := obstacle.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-recorded; err != nil {
		t.Errorf("the write under way: %v", err)
	}
}

// NON-6: at takeover a number that was held and never signed is released, one with a signature is not; gaps are reused
// lowest first.
func TestHeldNumbersAreReleasedAndReused(t *testing.T) {
	d := newHolder(t, 4)
	d.MustClaim(t, d.Intents[0], 0, 0)
	hold := begin(t, d.Address)
	run(t, hold, `UPDATE keeper.signer_lease SET next_nonce = 4`)
	for n := 1; n <= 2; n++ {
		run(t, hold,
			`INSERT INTO keeper.signer_nonce_allocation (signer, nonce, state, intent, token)
				VALUES ($1, $2, 'HELD', $3, 1)`,
			d.Fence.Signer[:], n, d.Intents[n])
	}
	run(t, hold,
		`INSERT INTO keeper.signer_nonce_allocation (signer, nonce, state, intent, token)
			VALUES ($1, 3, 'HELD', $2, 1)`, d.Fence.Signer[:], d.Intents[3])
	run(t, hold, `INSERT INTO keeper.signed_tx (hash, intent, signer, nonce, seq, kind, raw, tip, cap, gas, token)
		VALUES (decode(repeat('ab', 32), 'hex'), $2, $1, 3, 1, 'EXEC', '', 1, 1, 1,
			1)`, d.Fence.Signer[:], d.Intents[3])
	if err := hold.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := txstore.NewLeases(d.DB).TakeOver(t.Context(), d.Fence, 0)
	if err != nil || c.Next != 4 || !slices.Equal(c.Released, []uint64{1, 2}) {
		t.Fatalf("cursor %+v, %v; want the gaps 1 and 2 below 4", c, err)
	}
	for _, want := range []uint64{1, 2} {
		if n := c.Promise(); n != want {
			t.Fatalf("promised %d, want %d", n, want)
		}
		d.MustClaim(t, d.Intents[want], want, c.Next)
		c = c.Taken(want)
	}
	again, err := txstore.NewLeases(d.DB).TakeOver(t.Context(), d.Fence, 0)
	if err != nil || again.Next != 4 || len(again.Released) != 0 {
		t.Errorf("cursor %+v, %v; want no gap", again, err)
	}
}

// Every field of a job is stored, whatever its texts contain.
func TestJobsAreStoredWhole(t *testing.T) {
	d := newHolder(t, 0)
	want := job.Job{
		ID: "order:\x00\xff\\:1", Kind: job.Order, Key: chain.Hash{1}, Account: chain.Address{2},
		Market: chain.Address{3}, Collateral: chain.Address{4},
		IsLong: true, SizeDeltaUsd: chain.Pow10(77), Tokens: []chain.Address{{5}, {6}},
		DueSinceMs: 1<<63 - 1, ExpiresMs: 1<<64 - 1, Class: job.ClassAdl, Ratio: chain.Pow10(77),
		Frozen: true, Signer: d.Fence.Signer,
		Evidence: job.Evidence{
			Block:      chain.BlockRef{Number: 1<<64 - 1, Hash: chain.Hash{7}, Parent: chain.Hash{8}, TimeMs: 9},
			Generation: 1<<32 - 1, Reports: []string{"a", "\x00"}, Reason: "because \xfe",
		},
	}
	for i := range reflect.ValueOf(want).NumField() {
		if reflect.ValueOf(want).Field(i).IsZero() {
			t.Errorf("the test forgets %s", reflect.TypeOf(want).Field(i).Name)
		}
	}
	if _, err := txstore.NewIntents(d.DB).Enqueue(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	heads, err := txstore.NewIntents(d.DB).Heads(t.Context(), d.Fence.Signer, txm.Pick{Limit: 9})
	if err != nil || len(heads) != 1 || !reflect.DeepEqual(heads[0].Job, want) {
		t.Errorf("stored %+v, want %+v, %v", heads, want, err)
	}
}

// The lists of states in the schema and in statements are those of the rooms.
func TestStatesAgreeWithTheRooms(t *testing.T) {
	var live, flying, ended, known []string
	for _, s := range txm.States() {
		known = append(known, string(s))
		switch {
		case s.Terminal():
			ended = append(ended, string(s))
		case s.InFlight():
			flying = append(flying, string(s))
		}
		if !s.Terminal() {
			live = append(live, string(s))
		}
	}
	schema, err := fs.ReadFile(pg.SchemaFiles(), "migrations/00001_keeper.sql")
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`\(('[A-Z_]+'(?:, '[A-Z_]+')*)\)`)
	texts := []string{string(schema)}
	for _, text := range pg.StatementTexts() {
		texts = append(texts, text)
	}
	lawful := [][]string{
		known, live, flying, {string(txm.Queued), string(txm.Skipped)}, {"EXEC"},
		{string(txm.Exec), string(txm.Cancel), string(txm.Fill)},
		{string(nonce.Held), string(nonce.Signed), string(nonce.Consumed), string(nonce.Released)},
		{string(nonce.Held), string(nonce.Released)},
		{"USER_INITIATED_CANCEL", "AUTO_CANCEL"}, // the venue's reasons
	}
	for _, text := range texts {
		for _, found := range lists.FindAllStringSubmatch(text, -1) {
			list := strings.Split(strings.ReplaceAll(found[1], "'", ""), ", ")
			if !slices.ContainsFunc(lawful, func(l []string) bool { return slices.Equal(l, list) }) {
				t.Errorf("a list of states that no room knows: %v", list)
			}
		}
	}
	if len(ended)+len(live) != len(known) {
		t.Error("a state is neither live nor at its end")
	}
}

// A claim is on disk when it returns, also where the server commits asynchronously by default.
func TestClaimCommitsDurably(t *testing.T) {
	d := newHolder(t, 1)
	conn := connect(t, d.Address)
	if _, err := conn.Exec(t.Context(), `SET synchronous_commit = off`); err != nil {
		t.Fatal(err)
	}
	c := d.Claim(d.Intents[0], 0, 0)
	tx := c.Claims[0].Tx
	var stored int
	var whole bool
	var setting string
	err := conn.QueryRow(t.Context(), pg.StatementTexts()["claim intents"], d.Fence.Signer[:], d.Fence.Owner,
		d.Fence.Token, d.Intents, []int64{0}, c.Cursor,
		[][]byte{tx.Hash[:]}, [][]byte{tx.Raw}, []int64{1}, []int64{1}, []int64{1}, 16, 10,
		[]string{string(txm.Queued)}).Scan(&stored, &setting, &whole)
	if err != nil || stored != 1 || setting != "on" {
		t.Errorf("stored %d with synchronous_commit %q, %v", stored, setting, err)
	}
}

// What this keeper has signed is known, whichever of its processes did; what it has not is told.
func TestUnsigned(t *testing.T) {
	d := newHolder(t, 1)
	batch := d.Claim(d.Intents[0], 0, 0)
	if err := txstore.NewIntents(d.DB).Claim(t.Context(), d.Fence, batch); err != nil {
		t.Fatal(err)
	}
	ours, strange := batch.Claims[0].Tx.Hash, chain.Hash{0xee}
	got, err := txstore.NewIntents(d.DB).Unsigned(t.Context(), []chain.Hash{ours, strange})
	if err != nil || !slices.Equal(got, []chain.Hash{strange}) {
		t.Errorf("unsigned are %v, %v", got, err)
	}
}
