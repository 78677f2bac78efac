package signer

import (
	"bytes"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/pkg/chain"
)

// unsigned is the transaction as the chain's library has it.
func (tx Tx) unsigned() *types.DynamicFeeTx {
	to := common.Address(tx.To)
	return &types.DynamicFeeTx{
		ChainID:   new(big.Int).SetUint64(tx.ChainID),
		Nonce:     tx.Nonce,
		GasTipCap: new(big.Int).SetUint64(tx.Tip),
		GasFeeCap: new(big.Int).SetUint64(tx.Cap),
		Gas:       tx.Gas,
		To:        &to,
		Value:     new(big.Int).SetUint64(tx.Value),
		Data:      tx.Data,
	}
}

// signer is how signatures of the transaction's chain are made and read.
func (tx Tx) signer() types.Signer {
	return types.LatestSignerForChainID(new(big.Int).SetUint64(tx.ChainID))
}

// verify returns the hash of signed bytes, or how they differ from what was asked for. It quotes nothing of the bytes.
func (tx Tx) verify(by chain.Address, raw []byte) (chain.Hash, error) {
	var got types.Transaction
	if err := got.UnmarshalBinary(raw); err != nil {
		return chain.Hash{}, fmt.Errorf("its answer of %d bytes is no transaction", len(raw))
	}
	if field := tx.differs(&got); field != "" {
		return chain.Hash{}, fmt.Errorf("it signed another transaction: %s differs", field)
	}
	from, err := types.Sender(tx.signer(), &got)
	if err != nil {
		return chain.Hash{}, fmt.Errorf("its signature is none: %w", err)
	}
	if chain.Address(from) != by {
		return chain.Hash{}, fmt.Errorf("it signed with the key of %s", chain.Address(from))
	}
	return chain.Hash(got.Hash()), nil
}

// differs names the first field in which a transaction is not the one asked for, or nothing. Whatever has no name here
// differs in its type, and all that is signed of this type is compared.
func (tx Tx) differs(got *types.Transaction) string {
	want := types.NewTx(tx.unsigned())
	switch {
	case got.Type() != want.Type():
		return "the type"
	case got.ChainId().Cmp(want.ChainId()) != 0:
		return "the chain id"
	case got.Nonce() != want.Nonce():
		return "the nonce"
	case got.To() == nil || *got.To() != *want.To():
		return "the recipient"
	case got.Value().Cmp(want.Value()) != 0:
		return "the value"
	case !bytes.Equal(got.Data(), want.Data()):
		return "the data"
	case got.Gas() != want.Gas():
		return "the gas limit"
	case got.GasTipCap().Cmp(want.GasTipCap()) != 0:
		return "the tip"
	case got.GasFeeCap().Cmp(want.GasFeeCap()) != 0:
		return "the fee cap"
	case len(got.AccessList()) > 0:
		return "the access list"
	}
	return ""
}
