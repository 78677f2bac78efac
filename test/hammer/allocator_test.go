package hammer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

// allocatorVariable makes this test binary an allocator: it holds the orders of the process as JSON.
const allocatorVariable = "KEEPER_HAMMER_ALLOCATOR"

// orders are what an allocator is told.
type orders struct {
	Database, Node, Key string
}

// allocator is a sender without its ears and its eyes: it takes what is queued, and neither looks at the state nor asks
// whether a call would succeed. What it does do it does with the same lease, cursor, statements and keys as a sender,
// in the same order: claim, then broadcast, then follow to the end.
type allocator struct {
	db     *pg.DB
	node   *rpc.Client
	key    signer.Signer
	owner  lease.Owner
	term   *lease.Term
	cursor nonce.Cursor
	sent   map[chain.Hash]time.Time // when this lease term broadcast a transaction last
}

// The sizes of an allocator's work.
const (
	batch    = 64
	inFlight = 256
	// again is after how long an unmined transaction is broadcast again.
	again = 500 * time.Millisecond
)

// allocate is the life of an allocator.
func allocate() (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a, err := newAllocator(ctx)
	if err == nil {
		err = a.run(ctx)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Println("ended by", err)
		return 1
	}
	return 0
}

func newAllocator(ctx context.Context) (*allocator, error) {
	var o orders
	if err := json.Unmarshal([]byte(os.Getenv(allocatorVariable)), &o); err != nil {
		return nil, err
	}
	cfg := pg.DefaultConfig()
	cfg.PlanOnce = true // as the sender has it
	cfg.URL = secret.MustURL(o.Database)
	cfg.MaxConns = 12
	// as a sender has them
	cfg.ConnectTimeout, cfg.StatementTimeout, cfg.IdleInTransactionTimeout = leaseTTL/4, leaseTTL/4, leaseTTL/4
	db, err := pg.Open(ctx, cfg, "allocator")
	if err != nil {
		return nil, err
	}
	keys, err := signer.Open(signer.Config{Dev: true, DevKeys: []secret.String{secret.New(o.Key)}})
	if err != nil {
		return nil, err
	}
	node, err := rpc.DialContext(ctx, o.Node)
	return &allocator{db: db, node: node, key: keys[0], owner: lease.NewOwner(fmt.Sprint(os.Getpid()))}, err
}

// run holds one lease term after the other until ctx ends.
func (a *allocator) run(ctx context.Context) error {
	metrics := lease.NewMetrics(prometheus.NewRegistry())
	for ctx.Err() == nil {
		var err error
		if a.term, err = lease.Acquire(ctx, txstore.NewLeases(a.db), a.key.Address(), a.owner, leaseTTL,
			metrics); err != nil {
			wait(ctx, leaseTTL/10)
			continue
		}
		err = a.serve(ctx)
		if lease.Lost(err) {
			fmt.Println("lease term lost:", err)
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = a.term.Release(last) // it runs out by itself
		cancel()
	}
	return nil
}

// serve works under the lease term until it is over. Whatever else fails is begun again from what is stored.
func (a *allocator) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.term.Keep(ctx) })
	group.Go(func() error {
		a.sent = map[chain.Hash]time.Time{}
		for {
			err := a.work(ctx)
			if lease.Lost(err) || ctx.Err() != nil {
				return err
			}
			wait(ctx, between(rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1)), time.Millisecond,
				50*time.Millisecond))
		}
	})
	return group.Wait()
}

// work reads the cursor anew, and takes and follows intents until something fails.
func (a *allocator) work(ctx context.Context) error {
	latest, err := a.latest(ctx)
	if err != nil {
		return err
	}
	if a.cursor, err = txstore.NewLeases(a.db).TakeOver(ctx, a.term.Fence(), latest); err != nil {
		return err
	}
	for {
		flying, err := a.confirm(ctx)
		if err != nil {
			return err
		}
		heads, err := txstore.NewIntents(a.db).Heads(ctx, a.key.Address(), txm.Pick{Limit: min(batch, inFlight-flying)})
		if err != nil {
			return err
		}
		if err := a.take(ctx, heads); err != nil {
			return err
		}
		if len(heads) == 0 {
			wait(ctx, blockRest)
		}
	}
}

func (a *allocator) latest(ctx context.Context) (uint64, error) {
	var n hexutil.Uint64
	err := a.node.CallContext(ctx, &n, "eth_getTransactionCount", common.Address(a.key.Address()), "latest")
	return uint64(n), err
}

// take claims intents in one statement and broadcasts what was stored.
func (a *allocator) take(ctx context.Context, heads []txm.Intent) error {
	if len(heads) == 0 {
		return nil
	}
	if err := a.term.Check("sign"); err != nil {
		return err
	}
	b, after := txm.Batch{Cursor: a.cursor.Next, Limits: txm.Limits{Signer: inFlight, Liquidations: 1}}, a.cursor
	for _, i := range heads {
		tx, err := a.sign(ctx, i.Job, after.Promise())
		if err != nil {
			return err
		}
		b.Claims, after = append(b.Claims, txm.Claim{Intent: i.ID, Kind: i.Job.Kind, Tx: tx}), after.Taken(tx.Nonce)
	}
	if err := a.claim(ctx, b); err != nil {
		return err
	}
	a.cursor = after
	txs := make([]txm.SignedTx, len(b.Claims))
	for i, c := range b.Claims {
		txs[i] = c.Tx
	}
	return a.broadcast(ctx, txs)
}

// claim stores a batch. An answer that was lost is looked up; if nobody knows, the cursor is read anew.
func (a *allocator) claim(ctx context.Context, b txm.Batch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseTTL/4)
	defer cancel()
	err := txstore.NewIntents(a.db).Claim(ctx, a.term.Fence(), b)
	if err == nil || lease.Lost(err) || txm.Refused(err) != "" {
		return err
	}
	stored, lookUp := txstore.NewIntents(a.db).Claimed(ctx, b.Claims[0].Intent)
	if lookUp == nil && stored == b.Claims[0].Tx.Hash {
		return nil
	}
	return errors.Join(err, lookUp)
}

func (a *allocator) sign(ctx context.Context, j job.Job, n uint64) (txm.SignedTx, error) {
	const gas = 200_000
	to, data, err := gmx.VenueOf(chain.Address{}, map[job.Kind]chain.Address{job.AdlState: {0xad}}).Call(
		job.Job{Kind: job.AdlState, Market: j.Market, IsLong: j.IsLong}, gmx.SetPrices{})
	if err != nil {
		return txm.SignedTx{}, err
	}
	raw, hash, err := a.key.Sign(ctx, signer.Tx{
		ChainID: chainID, Nonce: n, To: to,
		Data: data, Gas: gas, Tip: price, Cap: price,
	})
	return txm.SignedTx{Nonce: n, Gas: gas, Tip: price, Cap: price, Hash: hash, Raw: raw}, err
}

// broadcast gives stored bytes to the node. What the node answers decides nothing: receipts do.
func (a *allocator) broadcast(ctx context.Context, txs []txm.SignedTx) error {
	if err := a.term.Check("broadcast"); err != nil {
		return err
	}
	calls := make([]rpc.BatchElem, len(txs))
	for i, tx := range txs {
		calls[i] = rpc.BatchElem{Method: "eth_sendRawTransaction", Args: []any{hexutil.Bytes(tx.Raw)},
			Result: new(common.Hash)}
		a.sent[tx.Hash] = time.Now()
	}
	return a.node.BatchCallContext(ctx, calls)
}

// receipt is what an allocator reads of one.
type receipt struct {
	Block   hexutil.Uint64 `json:"blockNumber"`
	In      chain.Hash     `json:"blockHash"`
	GasUsed hexutil.Uint64 `json:"gasUsed"`
	Price   hexutil.Uint64 `json:"effectiveGasPrice"`
}

// confirm ends what was mined, which is final on this chain, broadcasts the rest again when it is time, and returns how
// many are left.
func (a *allocator) confirm(ctx context.Context) (left int, err error) {
	inFlight, err := txstore.NewIntents(a.db).InFlight(ctx, a.key.Address())
	if err != nil || len(inFlight) == 0 {
		return 0, err
	}
	found, calls := make([]*receipt, len(inFlight)), make([]rpc.BatchElem, len(inFlight))
	for i, f := range inFlight {
		calls[i] = rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{f.Newest().Hash}, Result: &found[i]}
	}
	if err := a.node.BatchCallContext(ctx, calls); err != nil {
		return 0, err
	}
	var unmined []txm.SignedTx
	group, finishing := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, f := range inFlight {
		tx := f.Newest().SignedTx
		if found[i] != nil {
			delete(a.sent, tx.Hash)
			group.Go(func() error { return a.finish(finishing, tx, *found[i]) })
			continue
		}
		left++
		if time.Since(a.sent[tx.Hash]) > again {
			unmined = append(unmined, tx)
		}
	}
	if err := group.Wait(); err != nil || len(unmined) == 0 {
		return left, err
	}
	return left, a.broadcast(ctx, unmined)
}

func (a *allocator) finish(ctx context.Context, tx txm.SignedTx, r receipt) error {
	mined := txm.Receipt{TxHash: tx.Hash, OK: true, GasUsed: uint64(r.GasUsed), GasPrice: uint64(r.Price),
		Outcome: job.Done}
	mined.Block.Number, mined.Block.Hash = uint64(r.Block), r.In
	if err := txstore.NewIntents(a.db).Record(ctx, a.term.Fence(), mined); err != nil {
		return err
	}
	return txstore.NewIntents(a.db).Finish(ctx, a.term.Fence(), txm.FinalReceipt{Receipt: mined, Rest: txm.Rest{}})
}
