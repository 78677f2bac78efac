package ledger_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"perpkeeper/lab/simulator/ledger"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/txm"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// store is what ledger and Postgres both are.
type store struct {
	lease.Store
	txm    txm.Store
	nonces nonce.Store
	ids    map[int64]string // intents by their id, named by job and attempt: Postgres leaves out ids now and then
	fences map[chain.Address]lease.Fence
	cursor map[chain.Address]nonce.Cursor
}

// twins are both, and what is drawn for them.
type twins struct {
	t       *testing.T
	random  *rand.Rand
	both    [2]*store
	signers []chain.Address
	owners  []lease.Owner
	hashes  []chain.Hash // of all transactions that were ever stored, or tried to be
	names   []string     // of all intents ever seen
	answers map[string]int
}

// Answer by answer, over thousands of random calls by several owners of several signers, the ledger says what Postgres
// says.
func TestPostgresSaysTheSame(t *testing.T) {
	steps, long := 1000, os.Getenv("KEEPER_LONG") != ""
	if long {
		steps = 20_000
	}
	db, own := pgtest.DB(t), ledger.New(time.Now)
	w := &twins{t: t, random: rand.New(rand.NewPCG(7, 13)), answers: map[string]int{}}
	leases := txstore.NewLeases(db)
	for i, s := range []store{{Store: leases, txm: txstore.NewIntents(db), nonces: leases},
		{Store: own, txm: own, nonces: own}} {
		s.ids, s.fences, s.cursor = map[int64]string{}, map[chain.Address]lease.Fence{},
			map[chain.Address]nonce.Cursor{}
		w.both[i] = &s
	}
	for n := range byte(3) {
		signer := chain.Address{0xaa, n}
		w.signers = append(w.signers, signer)
		for _, s := range w.both {
			s.fences[signer] = lease.Fence{Signer: signer} // of nobody yet
		}
		if err := errors.Join(txstore.NewLeases(db).Register(t.Context(), signer, testChain),
			own.Register(t.Context(), signer, testChain)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		w.owners = append(w.owners, lease.NewOwner("owner"))
	}
	for range steps {
		w.step()
	}
	w.judge(long)
}

// step makes one call on both, and demands one answer.
func (w *twins) step() {
	w.t.Helper()
	name := pick(w.random, tickets)
	call := calls[name](w)
	var said [2]string
	for i, s := range w.both {
		said[i] = call(w.t.Context(), s)
	}
	if said[0] != said[1] {
		w.t.Fatalf("%s: Postgres says\n%s\nand the ledger\n%s", name, said[0], said[1])
	}
	w.answers[name+" "+kindOf(said[0])]++
}

// kindOf is an answer without most of its details.
func kindOf(said string) string { return said[:min(len(said), 24)] }

// judge demands that the calls met what they were to meet. Some answers are too rare for a short run.
func (w *twins) judge(long bool) {
	w.t.Helper()
	common := []string{
		"enqueue queued", "enqueue refreshed", "enqueue in_flight", "enqueue cooling", "enqueue unknown signer",
		"claim ok", "claim lost",
		"replace ok", "replace refused moved", "noted ok", "record ok", "record refused moved", "unmine ok",
		"finish ok", "nonce_lost ok", "skip ok", "skip lost",
		"fill ok", "fill refused moved", "pause ok", "take over ok", "resync ok", "acquire ok", "acquire held",
		"report ok", "release ok", "renew ok", "renew lost",
	}
	rare := []string{
		"claim refused moved", "claim refused cursor_moved", "claim refused signer_full", "claim refused key_busy",
		"claim refused account_busy",
		"claim refused keeper_full", "unmine refused moved", "take over behind", "resync failed",
	}
	if long {
		common = append(common, rare...)
	}
	for _, want := range common {
		if w.answers[want] == 0 {
			w.t.Errorf("%q never happened: the test proves less than it says", want)
		}
	}
	w.t.Log(len(w.answers), "kinds of answers")
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// said is an answer in words that both can say.
func said(err error, answer ...any) string {
	switch why := txm.Refused(err); {
	case err == nil && len(answer) == 0:
		return "ok"
	case err == nil:
		return fmt.Sprint(answer...)
	case why != "":
		return "refused " + string(why)
	case lease.Lost(err):
		return "lost"
	case lease.Held(err):
		return "held"
	case nonce.Behind(err):
		return "behind"
	case errors.Is(err, txm.ErrUnknownSigner):
		return "unknown signer"
	default:
		return "failed"
	}
}

// name is how both call an intent.
func (s *store) name(i txm.Intent) string {
	name := fmt.Sprintf("%s#%d", i.Job.ID, i.Attempt)
	s.ids[i.ID] = name
	return name
}

// id is an intent's by its name; 0 if this store never showed it.
func (s *store) id(name string) int64 {
	for id, n := range s.ids {
		if n == name {
			return id
		}
	}
	return 0
}

func (s *store) intent(i txm.Intent) string {
	name := s.name(i)
	i.ID, i.Waited = 0, 0
	return fmt.Sprintf("%s %+v", name, i)
}

func receipt(r *txm.Receipt) string {
	if r == nil {
		return "none"
	}
	return fmt.Sprintf("%+v", *r)
}

// call is one call with all that was drawn for it.
type call func(ctx context.Context, s *store) string

// tickets are the names of the calls, each as often as it is to be drawn.
var tickets = func() (all []string) {
	often := map[string]int{
		"enqueue": 14, "claim": 12, "record": 12, "finish": 8, "unmine": 6, "replace": 6, "skip": 4, "heads": 4,
		"flights": 4, "noted": 4, "unreported": 3,
		"report": 3, "fill": 3, "acquire": 4, "take over": 3, "resync": 3,
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		for range max(1, often[name]) {
			all = append(all, name)
		}
	}
	return all
}()

var calls = map[string]func(w *twins) call{
	"enqueue":    (*twins).enqueue,
	"claim":      (*twins).claim,
	"heads":      (*twins).heads,
	"flights":    (*twins).flights,
	"noted":      (*twins).noted,
	"replace":    (*twins).replace,
	"record":     (*twins).record,
	"unmine":     (*twins).unmine,
	"finish":     (*twins).finish,
	"nonce_lost": (*twins).nonceLost,
	"skip":       (*twins).skip,
	"fill":       (*twins).fill,
	"retry":      (*twins).retry,
	"take over":  (*twins).takeOver,
	"resync":     (*twins).resync,
	"acquire":    (*twins).acquire,
	"unreported": (*twins).unreported,
	"report":     (*twins).report,
	"depth": func(w *twins) call {
		signer := w.signer()
		return func(ctx context.Context, s *store) string {
			depth, err := s.txm.Depth(ctx, signer)
			return said(err, depth)
		}
	},
	"spent": func(w *twins) call {
		signer := w.signer()
		return func(ctx context.Context, s *store) string {
			wei, err := s.txm.Spent(ctx, signer)
			return said(err, wei[job.LiquidationLane], wei[job.OrderLane], wei[job.MaintenanceLane])
		}
	},
	"claimed": func(w *twins) call {
		name := w.name()
		return func(ctx context.Context, s *store) string {
			hash, err := s.txm.Claimed(ctx, s.id(name))
			return said(err, hash)
		}
	},
	"paused": func(w *twins) call {
		signer := w.signer()
		return func(ctx context.Context, s *store) string {
			reason, err := s.txm.Paused(ctx, signer)
			return said(err, reason)
		}
	},
	"pause": func(w *twins) call {
		signer := w.signer()
		return func(ctx context.Context, s *store) string {
			return said(s.txm.Pause(ctx, s.fences[signer], "odd"))
		}
	},
	"mined below": func(w *twins) call {
		signer := w.signer()
		number := w.both[0].cursor[signer].Next - min(w.both[0].cursor[signer].Next, w.random.Uint64N(5))
		return func(ctx context.Context, s *store) string {
			err := s.txm.MinedBelow(ctx, s.fences[signer], number)
			pending, errPending := s.txm.Pending(ctx, signer)
			return said(errors.Join(err, errPending), pending)
		}
	},
	"renew": func(w *twins) call {
		signer := w.signer()
		return func(ctx context.Context, s *store) string { return said(s.Renew(ctx, s.fences[signer], time.Hour)) }
	},
	"release": func(w *twins) call {
		signer := w.signer()
		return func(ctx context.Context, s *store) string {
			return said(s.Release(ctx, s.fences[signer]))
		}
	},
}

func (w *twins) signer() chain.Address { return pick(w.random, w.signers) }

func (w *twins) name() string {
	if len(w.names) == 0 {
		return ""
	}
	return w.names[max(0, len(w.names)-1-w.random.IntN(20))] // the newer ones are more likely to be in flight
}

func (w *twins) hash() chain.Hash {
	if len(w.hashes) == 0 {
		return chain.Hash{}
	}
	return w.hashes[max(0, len(w.hashes)-1-w.random.IntN(12))]
}

func (w *twins) enqueue() call {
	const clock = 1_700_000_000_000
	n := byte(w.random.IntN(5)) // whose something is never changes
	j := job.Job{
		Kind: job.Order, Key: chain.Hash{1, n}, Account: chain.Address{n % 2}, Class: job.Class(1 + w.random.IntN(3)),
		Signer: w.signer(),
		Ratio:  perp.U64(w.random.Uint64N(3)), BirthMs: w.random.Uint64N(3),
		Evidence: job.Evidence{Block: chain.BlockRef{TimeMs: clock + w.random.Uint64N(500)}},
	}
	j.ID = job.OrderID(j.Key, uint64(w.random.IntN(2)))
	if w.random.IntN(2) == 0 {
		j.Kind, j.Key = job.Liquidation, chain.Hash{2, n}
		j.ID = job.LiquidationID(j.Key, uint64(w.random.IntN(2)))
	}
	if w.random.IntN(20) == 0 {
		j.Signer = chain.Address{0xff}
	}
	return func(ctx context.Context, s *store) string {
		a, err := s.txm.Enqueue(ctx, j)
		return said(err, a)
	}
}

func (w *twins) heads() call {
	signer, limit, most, except := w.signer(), 1+w.random.IntN(5), w.random.IntN(4), w.name()
	urgent := w.random.IntN(4) == 0
	return func(ctx context.Context, s *store) string {
		heads, err := s.txm.Heads(ctx, signer, txm.Pick{Except: []int64{s.id(except)}, Limit: limit,
			Liquidations: most, Urgent: urgent})
		out := said(err, len(heads))
		for _, i := range heads {
			out += "\n" + s.intent(i)
			w.known(s.name(i))
		}
		return out
	}
}

func (w *twins) known(name string) {
	if !slices.Contains(w.names[max(0, len(w.names)-40):], name) {
		w.names = append(w.names, name)
	}
}

func (w *twins) tx(n uint64) txm.SignedTx {
	price := 10 + w.random.Uint64N(40)
	tx := txm.SignedTx{Nonce: n, Gas: 21_000 + w.random.Uint64N(9), Tip: price, Cap: price + w.random.Uint64N(3),
		Raw: []byte{byte(len(w.hashes))}}
	tx.Hash = sha256.Sum256(fmt.Append(nil, "transaction", len(w.hashes)))
	w.hashes = append(w.hashes, tx.Hash)
	return tx
}

// claim takes the heads of a queue, most of the time as a sender would.
func (w *twins) claim() call {
	signer := w.signer()
	cursor := w.both[0].cursor[signer].Next
	limits := txm.Limits{Signer: 3 + w.random.IntN(4), Reserved: w.random.IntN(8), Liquidations: 1 + w.random.IntN(3)}
	count, odd, stray := 1+w.random.IntN(4), w.random.IntN(12), w.name()
	var txs []txm.SignedTx
	for n := range uint64(count) {
		at := cursor + n
		if odd == 0 {
			at = w.random.Uint64N(cursor + 3)
		}
		txs = append(txs, w.tx(at))
	}
	return func(ctx context.Context, s *store) string {
		heads, err := s.txm.Heads(ctx, signer, txm.Pick{Limit: count})
		if err != nil || len(heads) == 0 {
			return said(err, 0)
		}
		b := txm.Batch{Cursor: cursor, Limits: limits}
		for n, i := range heads {
			w.known(s.name(i))
			b.Claims = append(b.Claims, txm.Claim{Intent: i.ID, Kind: i.Job.Kind, Tx: txs[n]})
		}
		switch odd {
		case 1:
			b.Claims[0].Intent = s.id(stray)
		case 2:
			b.Cursor++
		case 3:
			b.Claims[0].Kind = job.Order
		}
		err = s.txm.Claim(ctx, s.fences[signer], b)
		if err == nil {
			s.cursor[signer] = nonce.Cursor{Next: max(cursor, txs[len(b.Claims)-1].Nonce+1)}
		}
		return said(err)
	}
}

func (w *twins) flights() call {
	signer := w.signer()
	return func(ctx context.Context, s *store) string {
		flights, err := s.txm.InFlight(ctx, signer)
		out := said(err, len(flights))
		for _, f := range flights {
			out += fmt.Sprintf("\n%s %+v %s", s.intent(f.Intent), f.Txs, receipt(f.Mined))
		}
		return out
	}
}

func (w *twins) noted() call {
	signer, lot, hash, accepted := w.signer(), w.random.IntN(100), w.hash(), w.random.IntN(2) == 0
	return func(ctx context.Context, s *store) string {
		if f, some := s.flying(ctx, signer, lot); some && lot%4 > 0 {
			hash = f.Newest().Hash
		}
		return said(s.txm.Noted(ctx, s.fences[signer], hash, "class", accepted))
	}
}

// flying returns a flight of a store, by a lot that is the same for both.
func (s *store) flying(ctx context.Context, signer chain.Address, lot int) (f txm.Flight, some bool) {
	flights, err := s.txm.InFlight(ctx, signer)
	if err != nil || len(flights) == 0 {
		return f, false
	}
	slices.SortFunc(flights, func(a, b txm.Flight) int { return cmp.Compare(a.Intent.Nonce, b.Intent.Nonce) })
	return flights[lot%len(flights)], true
}

func (w *twins) replace() call {
	signer, lot, tx, odd := w.signer(), w.random.IntN(100), w.tx(0), w.random.IntN(4) == 0
	kind := pick(w.random, []txm.TxKind{txm.Exec, txm.Exec, txm.Cancel, txm.Fill})
	verdict := txm.Verdict{Outcome: pick(w.random, []job.Outcome{job.SkippedDone, job.DroppedRecovered}),
		Reason: "why\x00"}
	return func(ctx context.Context, s *store) string {
		f, some := s.flying(ctx, signer, lot)
		if !some {
			return "nothing flies"
		}
		r := txm.Replacement{Intent: f.Intent.ID, After: f.Newest().Hash, Kind: kind, Tx: tx, Cancel: verdict}
		r.Tx.Nonce = f.Intent.Nonce
		if odd {
			r.After = f.Txs[0].Hash
			r.Tx.Tip = f.Newest().Tip * 109 / 100
		} else {
			r.Tx.Tip, r.Tx.Cap = f.Newest().Tip*2, f.Newest().Cap*2
		}
		return said(s.txm.Replace(ctx, s.fences[signer], r))
	}
}

func (w *twins) receipt(hash chain.Hash) txm.Receipt {
	return txm.Receipt{
		TxHash: hash, Block: chain.BlockRef{Number: 5, Hash: chain.Hash{byte(w.random.IntN(2) + 1)}}, OK: true,
		GasUsed: 20_000 + w.random.Uint64N(3), GasPrice: 7,
		Outcome: pick(w.random, []job.Outcome{job.Done, job.LostRace, job.Reverted, job.SkippedDone}), Reason: "logs",
	}
}

func (w *twins) record() call {
	signer, lot, r := w.signer(), w.random.IntN(100), w.receipt(w.hash())
	stray := w.random.IntN(6) == 0
	return func(ctx context.Context, s *store) string {
		if f, some := s.flying(ctx, signer, lot); some && !stray {
			r.TxHash = f.Txs[lot%len(f.Txs)].Hash
		}
		return said(s.txm.Record(ctx, s.fences[signer], r))
	}
}

func (w *twins) unmine() call {
	signer, lot, branch := w.signer(), w.random.IntN(100), byte(w.random.IntN(2)+1)
	return func(ctx context.Context, s *store) string {
		f, some := s.flying(ctx, signer, lot)
		if !some || f.Mined == nil {
			return "nothing is mined"
		}
		r := *f.Mined
		r.Block.Hash = chain.Hash{branch}
		return said(s.txm.Unmine(ctx, s.fences[signer], r))
	}
}

func (w *twins) rest() txm.Rest {
	return txm.Rest{RetryAfterMs: 1_700_000_000_000 + w.random.Uint64N(300), GivenUp: w.random.IntN(2) == 0}
}

func (w *twins) finish() call {
	signer, lot, rest := w.signer(), w.random.IntN(100), w.rest()
	return func(ctx context.Context, s *store) string {
		f, some := s.flying(ctx, signer, lot)
		if !some || f.Mined == nil {
			return "nothing is mined"
		}
		return said(s.txm.Finish(ctx, s.fences[signer], txm.FinalReceipt{Receipt: *f.Mined, Rest: rest}))
	}
}

func (w *twins) nonceLost() call {
	signer, lot := w.signer(), w.random.IntN(100)
	end := txm.Ending{Verdict: txm.Verdict{Outcome: job.Foreign, Reason: "a stranger"}, Rest: w.rest()}
	return func(ctx context.Context, s *store) string {
		f, some := s.flying(ctx, signer, lot)
		if !some {
			return "nothing flies"
		}
		return said(s.txm.NonceLost(ctx, s.fences[signer], f.Intent.ID, end))
	}
}

func (w *twins) skip() call {
	signer, name := w.signer(), w.name()
	o := pick(w.random, []job.Outcome{job.SkippedDone, job.Refused, job.Expired, job.Reverted})
	end := txm.Ending{Verdict: txm.Verdict{Outcome: o, Reason: "why \xff"}, Rest: w.rest()}
	return func(ctx context.Context, s *store) string {
		return said(s.txm.Skip(ctx, s.fences[signer], s.id(name), end))
	}
}

func (w *twins) retry() call {
	signer, lot := w.signer(), w.random.IntN(100)
	return func(ctx context.Context, s *store) string {
		failed, err := s.txm.Failed(ctx, signer)
		if err != nil || len(failed) == 0 {
			return said(err, "none")
		}
		slices.SortFunc(failed, func(a, b txm.Failed) int { return cmp.Compare(a.Intent, b.Intent) })
		f := failed[lot%len(failed)]
		return said(s.txm.Retry(ctx, s.fences[signer], f.Intent)) + fmt.Sprint(" ", len(failed), " ", f.AtMs)
	}
}

func (w *twins) fill() call {
	signer := w.signer()
	tx := w.tx(w.random.Uint64N(w.both[0].cursor[signer].Next + 2))
	return func(ctx context.Context, s *store) string { return said(s.txm.Fill(ctx, s.fences[signer], tx)) }
}

func (w *twins) takeOver() call {
	signer := w.signer()
	latest := w.random.Uint64N(w.both[0].cursor[signer].Next + 1)
	if w.random.IntN(6) == 0 {
		latest = w.both[0].cursor[signer].Next + w.random.Uint64N(3)
	}
	return func(ctx context.Context, s *store) string {
		c, err := s.nonces.TakeOver(ctx, s.fences[signer], latest)
		if err == nil {
			s.cursor[signer] = c
		}
		if err == nil && c.Next == 0 {
			return "ok, and nothing was given yet"
		}
		return said(err)
	}
}

func (w *twins) resync() call {
	signer := w.signer()
	latest := w.both[0].cursor[signer].Next + w.random.Uint64N(2)
	seen := nonce.ChainNonces{Finalized: latest, Latest: latest, Pending: latest + uint64(w.random.IntN(3)/2)}
	return func(ctx context.Context, s *store) string {
		c, err := s.nonces.(nonce.Resyncer).Resync(ctx, signer, seen)
		if err == nil {
			s.cursor[signer] = c
		}
		return said(err)
	}
}

func (w *twins) acquire() call {
	signer, owner := w.signer(), w.owners[w.random.IntN(5)/4]
	return func(ctx context.Context, s *store) string {
		f, err := s.Acquire(ctx, signer, owner, time.Hour)
		if err == nil {
			s.fences[signer] = f
		}
		return said(err)
	}
}

func (w *twins) unreported() call {
	signer, limit := w.signer(), 1+w.random.IntN(5)
	return func(ctx context.Context, s *store) string {
		ended, err := s.txm.Unreported(ctx, signer, limit)
		out := said(err, len(ended))
		for _, e := range ended {
			out += fmt.Sprintf("\n%s %s %t", s.intent(e.Intent), receipt(e.Receipt), e.EndedAt.IsZero())
		}
		return out
	}
}

func (w *twins) report() call {
	signer, name := w.signer(), w.name()
	return func(ctx context.Context, s *store) string {
		ids := []int64{s.id(name)}
		if ended, err := s.txm.Unreported(ctx, signer, 1); err == nil && len(ended) > 0 {
			ids = append(ids, ended[0].Intent.ID)
		}
		return said(s.txm.Reported(ctx, s.fences[signer], ids))
	}
}
