package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg/txstore"
)

// pnl is what keeperctl pnl says, in wei.
type pnl struct {
	LastBlock uint64
	Lines     []struct {
		Kind, Fees, Gas, Net string
		Transactions         int
	}
	Accounts []struct{ Signer, Net, Moved, Booked string }
}

func (k *keeper) pnl(ctx context.Context) (p pnl, err error) {
	said, err := k.Keeperctl(ctx, "pnl", "day", "--check", "--output", "json")
	if err != nil {
		return p, fmt.Errorf("%w: %s", err, said)
	}
	return p, json.Unmarshal([]byte(said[max(strings.Index(said, "{\n"), 0):]), &p) // warnings may stand before it
}

// balance asks the node itself.
func (k *keeper) balance(account chain.Address, block uint64) chain.Int {
	k.t.Helper()
	var wei hexutil.Big
	if err := k.chain.CallContext(k.t.Context(), &wei, "eth_getBalance", account.Hex(),
		hexutil.EncodeUint64(block)); err != nil {
		k.t.Fatal(err)
	}
	v, err := chain.UintFromBig((*big.Int)(&wei))
	if err != nil {
		k.t.Fatal(err)
	}
	return v.Int()
}

// topUp has the deployer send coins to a signer.
func (k *keeper) topUp(to chain.Address, wei uint64) {
	k.t.Helper()
	var deployer demo.Account
	for _, a := range k.Devnet.Accounts {
		if a.Purpose == "deployer" {
			deployer = a
		}
	}
	key, err := crypto.HexToECDSA(strings.TrimPrefix(deployer.Key, "0x"))
	if err != nil {
		k.t.Fatal(err)
	}
	client, ctx := ethclient.NewClient(k.chain), k.t.Context()
	nonce, err := client.PendingNonceAt(ctx, common.Address(deployer.Address))
	if err != nil {
		k.t.Fatal(err)
	}
	receiver := common.Address(to)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(new(big.Int).SetUint64(k.Devnet.ChainID)),
		&types.LegacyTx{Nonce: nonce, GasPrice: big.NewInt(5e9), Gas: 21_000, To: &receiver,
			Value: new(big.Int).SetUint64(wei)})
	if err == nil {
		err = client.SendTransaction(ctx, tx)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// agentOfEach makes every signer its own agent.
func agentOfEach(d demo.Devnet) (settings map[string]string, tables string) {
	var agents strings.Builder
	for _, a := range d.Accounts {
		if a.Purpose == "keeper" {
			fmt.Fprintf(&agents, "\n[[commission.agents]]\nagent = \"%s\"\nsigners = [\"%[1]s\"]\n", a.Address.Hex())
		}
	}
	return nil, agents.String()
}

// Profit and loss is what the signers' balances on the chain changed by, to the wei, but for what was sent to them; and
// the ledger has booked exactly the fees.
func TestProfitAndLossIsWhatBalancesSay(t *testing.T) {
	long(t)
	const sent = 123_456_789_000_000_001
	k := startAdapted(t, nil, func(s *demo.Stack) { s.Adapt = agentOfEach })
	k.progress(2, 0)
	signers, err := txstore.NewSigners(k.db).List(t.Context())
	if err != nil || len(signers) == 0 {
		t.Fatal(signers, err)
	}
	k.topUp(signers[0].Signer, sent)
	k.progress(4, 1)
	k.finish()
	all := k.canonical.Sent(0)
	lastSent := all[len(all)-1].Block

	var p pnl
	k.await("every transaction final, and every fee booked", func(ctx context.Context) (err error) {
		if p, err = k.pnl(ctx); err != nil {
			return err
		}
		var booked chain.Uint
		for _, a := range p.Accounts {
			wei, err := chain.ParseUint(a.Booked)
			if err != nil {
				return err
			}
			booked = booked.Add(wei)
		}
		if total := p.Lines[len(p.Lines)-1]; p.LastBlock < lastSent || booked.String() != total.Fees {
			return fmt.Errorf("final %d of %d, booked %s of %s", p.LastBlock, lastSent, booked, total.Fees)
		}
		return nil
	})
	var change, net chain.Int
	moved := map[string]string{signers[0].Signer.Hex(): fmt.Sprint(sent)}
	for _, a := range p.Accounts {
		signer, err := chain.ParseAddress(a.Signer)
		if err != nil {
			t.Fatal(err)
		}
		change = change.Add(k.balance(signer, p.LastBlock)).Sub(k.balance(signer, k.Devnet.Block))
		if want := moved[a.Signer]; a.Moved != want && (want != "" || a.Moved != "0") {
			t.Errorf("%s: %s was moved, want %q", a.Signer, a.Moved, want)
		}
	}
	total := p.Lines[len(p.Lines)-1]
	if err := net.UnmarshalText([]byte(total.Net)); err != nil {
		t.Fatal(err)
	}
	if want := change.Sub(chain.U64(sent).Int()); net != want {
		t.Errorf("net %s; the balances changed by %s but for what was sent to them", net, want)
	}
	if total.Transactions < len(all) || total.Fees == "0" || total.Gas == "0" {
		t.Errorf("%d transactions of at least %d, fees %s, gas %s", total.Transactions, len(all), total.Fees,
			total.Gas)
	}
	if out, err := k.Keeperctl(t.Context(), "wallet", "verify"); err != nil {
		t.Error(errors.New(out), err)
	}
	t.Logf("%d transactions: fees %s, gas %s, net %s wei", total.Transactions, total.Fees, total.Gas, total.Net)
}
