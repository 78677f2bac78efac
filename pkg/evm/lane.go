package evm

import (
	"context"
	"fmt"
	"math/big"

	"perpkeeper/pkg/chain"
)

// laneContract is BSC's system contract of the payment lane (BEP-703). It is there from the Jenner fork on.
var laneContract = chain.Address{18: 0x20, 19: 0x07}

// laneDenominator is what shares of a block's gas are parts of.
const laneDenominator = 10_000

// PaymentLane returns what share of a block's gas is kept for payments by now, in ten-thousandths; 0 where the chain
// has no such lane, or not yet. All other transactions have to do with the rest, also where nobody pays.
func (r Reader) PaymentLane(ctx context.Context) (uint64, error) {
	selector := chain.Keccak256([]byte("getPaymentLaneRatio()"))
	out, _, err := ask(ctx, r, scalar[hexBytes](methodCall, callArg{To: laneContract, Data: selector[:4]}, Latest))
	share := new(big.Int).SetBytes(out)
	switch {
	case err != nil:
		return 0, fmt.Errorf("asking for the payment lane: %w", err)
	case len(out) == 0:
		return 0, nil
	case len(out) != len(chain.Hash{}) || share.Cmp(big.NewInt(laneDenominator)) >= 0:
		return 0, fmt.Errorf("the payment lane's share is 0x%x, not a part of %d", []byte(out), laneDenominator)
	}
	return share.Uint64(), nil
}

// CallGas is what calls may use of a block with a gas limit of which a share is kept for payments, see
// [Reader.PaymentLane].
func CallGas(limit, share uint64) uint64 {
	kept := new(big.Int).Mul(new(big.Int).SetUint64(limit), new(big.Int).SetUint64(share))
	return limit - min(limit, kept.Div(kept, big.NewInt(laneDenominator)).Uint64())
}

// Pays reports whether an account that sends itself 1 wei makes a payment, for which a full block has room: where the
// chain has the lane, and the account no code (EIP-7702).
func (r Reader) Pays(ctx context.Context, account chain.Address) (bool, error) {
	share, err := r.PaymentLane(ctx)
	if err != nil || share == 0 {
		return false, err
	}
	code, _, err := ask(ctx, r, scalar[hexBytes](methodCode, account, Latest))
	if err != nil {
		return false, fmt.Errorf("asking for the code of %s: %w", account, err)
	}
	return len(code) == 0, nil
}
