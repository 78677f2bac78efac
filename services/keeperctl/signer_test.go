package keeperctl

import (
	"context"
	"crypto/ecdsa"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/test/rig"
)

// bench is a keeper's database and a chain whose blocks the test makes, with one signer.
type bench struct {
	signerCommands

	t       *testing.T
	address string // of the database
	node    *evmnode.Node
	key     *ecdsa.PrivateKey
	signer  chain.Address
}

func newBench(t *testing.T) *bench {
	t.Helper()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("signer")))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, key: key, signer: chain.Address(crypto.PubkeyToAddress(key.PublicKey)), address: pgtest.URL(t)}
	half := new(big.Int).Div(new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil), big.NewInt(2))
	if b.node, err = evmnode.New(evmnode.Config{Manual: true,
		Alloc: types.GenesisAlloc{common.Address(b.signer): {Balance: half}}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = b.node.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })

	b.db = rig.Postgres(t, b.address)
	b.own, b.dial = defaultConfig().Own, b.connect
	b.own.Limit = 1000
	return b
}

func (b *bench) connect(ctx context.Context) (witnesses, error) {
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(b.node.HTTPURL())}
	node, err := evm.Dial(ctx, b.node.ChainID().Uint64(), cfg, zerolog.Nop(), evm.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(node.Close)
	return node, nil
}

// told runs a command line and returns what it printed, or its error after "error: ".
func (b *bench) told(line string) string {
	b.t.Helper()
	var out strings.Builder
	d := b.signerCommands
	d.out = printer{Writer: &out}
	if err := d.run(b.t.Context(), strings.Fields(strings.ReplaceAll(line, "@", b.signer.Hex()))); err != nil {
		return out.String() + "error: " + err.Error()
	}
	return out.String()
}

// want runs a command line and looks for what it should say; columns are apart by any number of blanks.
func (b *bench) want(line string, parts ...string) {
	b.t.Helper()
	got := b.told(line)
	for _, part := range parts {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), strings.ReplaceAll(part, "@", b.signer.Hex())) {
			b.t.Errorf("keeperctl signer %s: %q is not in what was told:\n%s", line, part, got)
		}
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// attend makes a sender take the signer up.
func (b *bench) attend() lease.Fence {
	b.t.Helper()
	b.must(txstore.NewLeases(b.db).Register(b.t.Context(), b.signer, b.node.ChainID().Uint64()))
	f, err := txstore.NewLeases(b.db).Acquire(b.t.Context(), b.signer, lease.NewOwner("sender-a"), time.Minute)
	b.must(err)
	return f
}

// pay signs a payment to oneself.
func (b *bench) pay(n uint64) *types.Transaction {
	b.t.Helper()
	tx, err := types.SignNewTx(b.key, types.LatestSignerForChainID(b.node.ChainID()), &types.LegacyTx{
		Nonce: n, GasPrice: big.NewInt(evmnode.DefaultMinGasPrice), Gas: 21_000, To: (*common.Address)(&b.signer),
	})
	b.must(err)
	return tx
}

func (b *bench) send(n uint64) { b.t.Helper(); b.must(b.node.SendTransaction(b.pay(n))) }

// claim gives the next job the next number, as a sender does; what is broadcast is up to the test.
func (b *bench) claim(f lease.Fence, n uint64) {
	b.t.Helper()
	key := chain.Hash{byte(n + 1)}
	j := job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Class: job.ClassMarketOrder, Signer: b.signer}
	_, err := txstore.NewIntents(b.db).Enqueue(b.t.Context(), j)
	b.must(err)
	heads, err := txstore.NewIntents(b.db).Heads(b.t.Context(), b.signer, txm.Pick{Limit: 1})
	b.must(err)
	tx := b.pay(n)
	raw, err := tx.MarshalBinary()
	b.must(err)
	b.must(txstore.NewIntents(b.db).
		Claim(b.t.Context(), f, txm.Batch{Cursor: n, Limits: txm.Limits{Signer: 16, Liquidations: 1},
			Claims: []txm.Claim{
				{Intent: heads[0].ID, Kind: heads[0].Job.Kind, Tx: txm.SignedTx{Nonce: n, Hash: chain.Hash(tx.Hash()),
					Raw: raw, Gas: 1, Tip: 1, Cap: 1}},
			}}))
}

// An operator pauses a signer with a reason, sees it, and lets it go on.
func TestSignerListPauseResume(t *testing.T) {
	b := newBench(t)
	b.want("list", "no sender has started on this database yet")
	b.want("pause @ x", "error: signer @ is not known here")
	f := b.attend()
	b.want("list", "signer state lease token next nonce queued in flight paused because",
		"@ works sender-a, ", " left 1 0 0 0")
	b.want("pause @", "error: say why")
	b.want("pause @ key is being moved", "claims nothing new from now on")
	b.want("pause @ again", "error: signer @ is paused already, and stays so for its first reason: key is being moved")
	b.must(txstore.NewLeases(b.db).Release(t.Context(), f))
	b.want("list", "@ PAUSED nobody, last sender-a 1 0 0 0 key is being moved", "keeperctl signer resume SIGNER",
		"is a sender with its key running")
	b.want("resume @", "signer @ may claim again; it was paused because: key is being moved")
	b.want("resume @", "error: signer @ is not paused")
	b.want("list", "@ UNATTENDED")
	for _, line := range []string{"", "list 1", "resume", "nonces @ @", "dance", "resync"} {
		b.want(line, "error: usage: keeperctl signer list | pause SIGNER REASON")
	}
	b.want("nonces 0x12", `error: "0x12" is no signer`)
	b.want("nonces 0x0000000000000000000000000000000000000001", "is not known here")
}

// The cursor is checked against what the chain knows, in every way they can differ.
func TestSignerNonces(t *testing.T) {
	b := newBench(t)
	b.must(txstore.NewLeases(b.db).Register(t.Context(), b.signer, b.node.ChainID().Uint64()))
	b.want("nonces", "@ 0.5 0 0 0 0 0 nothing was sent from here yet")
	b.send(0)
	b.must(b.node.Mine(3))
	f := b.attend()
	b.want("nonces @", "signer balance next here pending latest finalized in flight meaning",
		" 0 1 1 1 0 nothing was sent from here yet")
	if _, err := txstore.NewLeases(b.db).TakeOver(t.Context(), f, 1); err != nil {
		t.Fatal(err)
	}
	b.want("nonces", " 1 1 1 1 0 at rest")
	b.claim(f, 1)
	b.want("nonces", " 2 1 1 1 1 1 wait to be mined; those from 1 on are just sent")
	b.send(1)
	b.want("nonces", " 2 2 1 1 1 1 wait to be mined")
	b.send(2)
	b.want("nonces", " 2 3 1 1 1 STRANGER", "error: signers that are further on the chain than in the database: 1")
	b.must(b.node.Mine(1))
	b.want("nonces", " 2 3 3 1 1 DATABASE BEHIND", "error: signers that are further")
	b.signer = chain.Address{1}
	b.attend()
	b.want("nonces @", "@ 0 0 0 0 0 0 nothing was sent", "error: signers that cannot pay for gas: 1")
}

// busy is a chain on which the signer goes on while it is asked about.
type busy struct {
	witnesses

	goOn func()
}

func (c busy) NonceAt(ctx context.Context, account chain.Address, tag evm.Tag) (uint64, error) {
	n, err := c.witnesses.NonceAt(ctx, account, tag)
	c.goOn()
	return n, err
}

// A signer that is at work while it is looked at does not look like one whose key is in other hands.
func TestSignerNoncesOfOneAtWork(t *testing.T) {
	b := newBench(t)
	f, n := b.attend(), uint64(0)
	quiet := b.dial
	b.dial = func(ctx context.Context) (witnesses, error) {
		node, err := quiet(ctx)
		return busy{node, func() { b.claim(f, n); b.send(n); b.must(b.node.Mine(1)); n++ }}, err
	}
	for range 3 {
		if got := b.told("nonces"); strings.Contains(got, "error") || strings.Contains(got, "STRANGER") ||
			strings.Contains(got, "BEHIND") {
			t.Fatalf("told %s", got)
		}
	}
}

// NON-6: a number that nothing was signed with keeps everything above it waiting; the operator sees which, and what
// becomes of it.
func TestSignerGaps(t *testing.T) {
	b := newBench(t)
	f := b.attend()
	for n := range uint64(3) {
		b.claim(f, n)
	}
	b.want("gaps", "no gaps: every number")
	pgtest.Tamper(t, b.address, `DELETE FROM keeper.signed_tx WHERE nonce < 2`)
	pgtest.Tamper(t, b.address, `UPDATE keeper.signer_nonce_allocation SET state = 'RELEASED' WHERE nonce = 0`)
	pgtest.Tamper(t, b.address, `DELETE FROM keeper.signer_nonce_allocation WHERE nonce = 1`)
	b.want("gaps", "signer nonce state for last given to behind it what happens",
		"@ 0 RELEASED ", "s "+job.OrderID(chain.Hash{1}, 1)+" 1 the sender fills it",
		"@ 1 never given ", "s nobody 1 NOTHING by itself", "error: 2 of 2 gaps keep transactions from being mined")
	pgtest.Tamper(t, b.address, `UPDATE keeper.signer_lease SET next_nonce = 4`)
	pgtest.Tamper(t, b.address, `INSERT INTO keeper.signer_nonce_allocation (signer, nonce, state, intent, token)
		SELECT signer, 3, 'HELD', id, 1 FROM keeper.tx_intent LIMIT 1`)
	b.want("gaps @", "3 HELD", "its signature is awaited", "error: 2 of 3 gaps")
	b.send(0)
	b.send(1)
	b.must(b.node.Mine(1))
	if got := b.told("gaps"); strings.Contains(got, "RELEASED") || strings.Contains(got, "error") {
		t.Errorf("gaps that the chain has passed, or that nothing waits behind, are no trouble:\n%s", got)
	}
}

// A database that went back in time is reconciled only when the chain is at rest, and only when the operator says so.
func TestSignerResync(t *testing.T) {
	b := newBench(t)
	f := b.attend()
	pgtest.Tamper(t, b.address, `UPDATE keeper.signer SET timeline = timeline + 1`)
	b.want("pause @ restored", "claims nothing new")
	b.want("resume @", "error: the database has gone back in time", "keeperctl signer resync @")
	b.send(0)
	b.want("resync @", "next nonce here 0, on the chain 0 (latest), 0 (finalized), 1 (pending); lease: sender-a",
		"paused: restored", "error: transactions are under way")
	b.must(b.node.Mine(3))
	b.want("resync @", "on the chain 1 (latest), 1 (finalized), 1 (pending)", "error: nothing was changed",
		"--keeperctl.yes")
	if _, err := txstore.NewLeases(b.db).TakeOver(t.Context(), f, 1); !nonce.Behind(err) {
		t.Errorf("a resync that was only shown has changed something: %v", err)
	}
	b.own.Yes = true
	b.want("resync @", "resynced: the next nonce is 1, the signer is not paused")
	b.want("list", "@ UNATTENDED nobody, last resync")
	if err := txstore.NewLeases(b.db).Renew(t.Context(), f, time.Minute); !lease.Lost(err) {
		t.Errorf("the lease term from before goes on: %v", err)
	}
	b.want("nonces", "at rest")
	b.want("resume @", "is not paused")
}

func TestSignerChainAway(t *testing.T) {
	b := newBench(t)
	b.attend()
	b.must(b.node.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	d := b.signerCommands
	d.out = printer{Writer: new(strings.Builder)}
	if err := d.run(ctx, []string{"nonces"}); err == nil {
		t.Error("the chain is away, and nobody complained")
	}
	if err := d.run(t.Context(), []string{"list"}); err != nil {
		t.Errorf("a list needs no chain: %v", err)
	}
}
