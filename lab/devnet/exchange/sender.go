package exchange

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"perpkeeper/lab/devnet/contracts"
)

// Backend is the chain, as go-ethereum's clients offer it: ethclient.Client, and the client of ethclient/simulated.
type Backend interface {
	bind.Backend
	ethereum.ChainIDReader
	// BalanceAt is an account's native coin in wei; a nil block is the head.
	BalanceAt(ctx context.Context, account common.Address, block *big.Int) (*big.Int, error)
}

// gasTip is what the devnet's transactions pay for a unit of gas beyond the base fee: 1 gwei, above BSC's floor of 0.05
// gwei.
var gasTip = big.NewInt(1_000_000_000)

// receiptPoll is the pause between two looks for a receipt, small against a block interval.
const receiptPoll = 50 * time.Millisecond

// call is a transaction before it has a nonce.
type call struct {
	// to is nil for the deployment of a contract.
	to    *common.Address
	data  []byte
	value *big.Int
	gas   uint64
}

// sender signs and sends transactions; it keeps no state between them.
type sender struct {
	backend Backend
	chainID *big.Int
}

func newSender(ctx context.Context, backend Backend) (sender, error) {
	chainID, err := backend.ChainID(ctx)
	if err != nil {
		return sender{}, fmt.Errorf("reading the chain id: %w", err)
	}
	return sender{backend: backend, chainID: chainID}, nil
}

// send broadcasts a call with this nonce and returns the transaction's hash.
func (s sender) send(ctx context.Context, key *ecdsa.PrivateKey, nonce uint64, c call) (common.Hash, error) {
	head, err := s.backend.HeaderByNumber(ctx, nil)
	if err != nil {
		return common.Hash{}, fmt.Errorf("reading the head: %w", err)
	}
	feeCap := new(big.Int).Set(gasTip)
	if head.BaseFee != nil {
		feeCap.Add(feeCap, head.BaseFee).Add(feeCap, head.BaseFee)
	}
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(s.chainID), &types.DynamicFeeTx{
		ChainID: s.chainID, Nonce: nonce, GasTipCap: gasTip, GasFeeCap: feeCap, Gas: c.gas, To: c.to, Value: c.value,
		Data: c.data,
	})
	if err != nil {
		return common.Hash{}, fmt.Errorf("signing: %w", err)
	}
	if err := s.backend.SendTransaction(ctx, tx); err != nil {
		return common.Hash{}, fmt.Errorf("sending with nonce %d: %w", nonce, err)
	}
	return tx.Hash(), nil
}

// receipt waits until the transaction is in a block and returns its receipt, whatever its status. A node that does not
// answer is asked again: only ctx ends the wait.
func (s sender) receipt(ctx context.Context, hash common.Hash) (*types.Receipt, error) {
	ticker := time.NewTicker(receiptPoll)
	defer ticker.Stop()
	for {
		receipt, err := s.backend.TransactionReceipt(ctx, hash)
		if err == nil {
			return receipt, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the receipt of %s: %w", hash, errors.Join(ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

// RevertError is a transaction that was mined but failed.
type RevertError struct {
	Hash common.Hash
	// Reason names the exchange's error and its arguments, where running the call again on the block's state tells it.
	Reason string
}

// Error reports which transaction failed and why.
func (e *RevertError) Error() string {
	return fmt.Sprintf("transaction %s reverted: %s", e.Hash, e.Reason)
}

// succeeded turns a failed receipt into a RevertError.
func (s sender) succeeded(ctx context.Context, from common.Address, c call, receipt *types.Receipt) error {
	if receipt.Status == types.ReceiptStatusSuccessful {
		return nil
	}
	msg := ethereum.CallMsg{From: from, To: c.to, Gas: c.gas, Value: c.value, Data: c.data}
	_, err := s.backend.CallContract(ctx, msg, receipt.BlockNumber)
	return &RevertError{Hash: receipt.TxHash, Reason: revertReason(err)}
}

// revertReason words the error of a simulated call: the exchange's own error if it is one, else the error's text.
func revertReason(err error) string {
	if err == nil {
		return "succeeds when run again, so it depends on the block or ran out of gas"
	}
	if data, ok := errors.AsType[rpc.DataError](err); ok {
		text, _ := data.ErrorData().(string)
		if name, args, ok := contracts.RevertReason(common.FromHex(text)); ok {
			return fmt.Sprintf("%s%v", name, args)
		}
	}
	return err.Error()
}

func addressOf(key *ecdsa.PrivateKey) common.Address {
	return crypto.PubkeyToAddress(key.PublicKey)
}
