package bench

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/lab/devnet"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/test/rig"
)

// drainPatience ends a drain that does not come to its end.
const drainPatience = 5 * time.Minute

// drained is what the chain shows of a crash day, from the jump on.
type drained struct {
	jump   time.Time
	blocks []drainBlock
	landed []landing // liquidations that succeeded, in the order of the chain, one for each position
	all    []landing // every transaction of the signers
}

// drainBlock is a block as the node's JSON has it.
type drainBlock struct {
	Number         hexutil.Uint64
	MilliTimestamp hexutil.Uint64
	GasUsed        hexutil.Uint64
	GasLimit       hexutil.Uint64
	Transactions   []struct {
		From  common.Address
		To    *common.Address
		Nonce hexutil.Uint64
		Input hexutil.Bytes
	}
}

func (b drainBlock) at() time.Time { return time.UnixMilli(int64(b.MilliTimestamp)) }

// landing is a transaction of a signer in a block.
type landing struct {
	block       uint64
	at          time.Time
	signer      chain.Address
	nonce       uint64
	gas         uint64
	ok          bool
	liquidation bool
	account     chain.Address // of a liquidation
}

// drain lets the crash happen and follows the chain until as many liquidations have landed as there are positions, and
// some blocks more.
func (k *keeper) drain(positions int, crash func()) *drained {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), drainPatience)
	defer cancel()
	d, next := &drained{}, k.Node().Head().Number.Uint64()+1
	d.jump = time.Now()
	crash()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for more := uint64(10); len(d.landed) < positions || more > 0; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.t.Fatalf("%d of %d liquidations have landed", len(d.landed), positions)
		}
		for ; next <= k.Node().Head().Number.Uint64(); next++ {
			if len(d.landed) >= positions {
				more -= min(more, 1)
			}
			k.read(ctx, d, next)
		}
	}
	return d
}

// read takes a block in.
func (k *keeper) read(ctx context.Context, d *drained, number uint64) {
	k.t.Helper()
	var b drainBlock
	err := k.Exchange.Client.Client().CallContext(ctx, &b, "eth_getBlockByNumber", hexutil.Uint64(number), true)
	if err != nil {
		k.t.Fatal(err)
	}
	receipts, err := k.Exchange.Client.BlockReceipts(ctx, rpc.BlockNumberOrHashWithNumber(rpc.BlockNumber(number)))
	if err != nil {
		k.t.Fatal(err)
	}
	d.blocks = append(d.blocks, b)
	handler := k.Deployment().Contracts.LiquidationHandler
	for i, tx := range b.Transactions {
		if !k.signers[chain.Address(tx.From)] {
			continue
		}
		l := landing{block: number, at: b.at(), signer: chain.Address(tx.From), nonce: uint64(tx.Nonce),
			gas: receipts[i].GasUsed, ok: receipts[i].Status == 1, liquidation: tx.To != nil && *tx.To == handler}
		if l.liquidation {
			l.account = chain.Address(tx.Input[4+12 : 4+32]) // the first argument
			if _, known := k.traders[l.account]; known && l.ok && !d.has(l.account) {
				d.landed = append(d.landed, l)
			}
		}
		d.all = append(d.all, l)
	}
}

func (d *drained) has(account chain.Address) bool {
	return slices.ContainsFunc(d.landed, func(l landing) bool { return l.account == account })
}

// after is how long after the jump so many percent have landed.
func (d *drained) after(percent int) time.Duration {
	return d.landed[max(1, percent*len(d.landed)/100)-1].at.Sub(d.jump)
}

// gasEach is the gas that a liquidation took on average.
func (d *drained) gasEach() uint64 {
	sum := uint64(0)
	for _, l := range d.landed {
		sum += l.gas
	}
	return sum / uint64(len(d.landed))
}

// needs is how long the chain takes for so many liquidations at the least: blocks with as many as calls have gas for.
func (k *keeper) needs(positions int, d *drained) time.Duration {
	k.t.Helper()
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(k.RPC())}
	client := rig.Node(k.t, k.Deployment().ChainID, cfg)
	share, err := client.PaymentLane(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	each := max(int(evm.CallGas(uint64(d.blocks[0].GasLimit), share)/max(d.gasEach(), 1)), 1)
	return time.Duration((positions+each-1)/each) * devnet.DefaultConfig().BlockTime
}

// full is which part of the gas was used of the blocks between the first liquidation and the last.
func (d *drained) full() float64 {
	var used, limit uint64
	for _, b := range d.blocks {
		if n := uint64(b.Number); n >= d.landed[0].block && n < d.landed[len(d.landed)-1].block {
			used, limit = used+uint64(b.GasUsed), limit+uint64(b.GasLimit)
		}
	}
	return float64(used) / float64(max(1, limit))
}

// others is how many liquidations landed, well or not, beside the first good one of each position (0 twice).
func (d *drained) others(k *keeper) (extra int) {
	for _, l := range d.all {
		if _, ours := k.traders[l.account]; l.liquidation && ours {
			extra++
		}
	}
	return extra - len(d.landed)
}

// inOrder is which part of the pairs of a signer's liquidations, as they were claimed, has the one with less margin
// first. The pairs are compared by the margin they were opened with: their ratios move while they wait, all of them
// together.
func (d *drained) inOrder(k *keeper) float64 {
	claimed := map[chain.Address][]landing{}
	for _, l := range d.landed {
		claimed[l.signer] = append(claimed[l.signer], l)
	}
	var right, all float64
	for _, of := range claimed {
		slices.SortFunc(of, func(a, b landing) int { return int(a.nonce) - int(b.nonce) })
		for i, a := range of {
			for _, b := range of[i+1:] {
				all++
				if k.traders[a.account] > k.traders[b.account] {
					right++
				}
			}
		}
	}
	return right / max(1, all)
}

// heldBack counts liquidations by how many blocks orders and requests have held them back, and those orders and
// requests that landed. What stands before a liquidation on its signer holds it back from the first block that could
// have had it, after its broadcast and not before the liquidation ahead of it, to its own.
func (d *drained) heldBack(k *keeper) (liquidations []int, executed int) {
	sent := k.firstSent()
	perSigner := map[chain.Address][]landing{}
	for _, l := range d.all {
		perSigner[l.signer] = append(perSigner[l.signer], l)
	}
	liquidations = []int{0}
	for _, signer := range slices.Collect(maps.Keys(perSigner)) {
		of := perSigner[signer]
		slices.SortFunc(of, func(a, b landing) int { return int(a.nonce) - int(b.nonce) })
		var ahead, before uint64 // blocks of the newest liquidation and of the newest other one
		for _, l := range of {
			if !l.liquidation {
				before, executed = l.block, executed+1
				continue
			}
			could := max(ahead, d.headAt(sent[nonceOf{l.signer, l.nonce}])+1)
			by := int(before) - int(min(before, could))
			for len(liquidations) <= by {
				liquidations = append(liquidations, 0)
			}
			liquidations[by]++
			ahead = l.block
		}
	}
	return liquidations, executed
}

// headAt is the newest block at a time.
func (d *drained) headAt(t time.Time) uint64 {
	head := uint64(d.blocks[0].Number) - 1
	for _, b := range d.blocks {
		if !b.at().After(t) {
			head = uint64(b.Number)
		}
	}
	return head
}

// write leaves what landed when, block by block, in the directory KEEPER_RESULTS.
func (d *drained) write(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("KEEPER_RESULTS")
	if dir == "" {
		return
	}
	rows, landed := [][]string{{"block", "seconds", "gas_used", "liquidations_landed"}}, 0
	for _, b := range d.blocks {
		for landed < len(d.landed) && d.landed[landed].block <= uint64(b.Number) {
			landed++
		}
		rows = append(rows, []string{strconv.FormatUint(uint64(b.Number), 10),
			fmt.Sprintf("%.3f", b.at().Sub(d.jump).Seconds()), strconv.FormatUint(uint64(b.GasUsed), 10),
			strconv.Itoa(landed)})
	}
	writeCSV(t, filepath.Join(dir, "drain-"+strings.ReplaceAll(name, " ", "-")+".csv"), rows)
}

// writeCSV writes a table of results.
func writeCSV(t *testing.T, path string, rows [][]string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(file)
	if err := w.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
