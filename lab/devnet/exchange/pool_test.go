package exchange

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

func (v *venue) deposit(r *types.Receipt) common.Hash {
	v.t.Helper()
	key, ok := v.client.RequestKey(r, "DepositCreated")
	if !ok {
		v.t.Fatal("no DepositCreated")
	}
	return key
}

func (v *venue) withdrawal(r *types.Receipt) common.Hash {
	v.t.Helper()
	key, ok := v.client.RequestKey(r, "WithdrawalCreated")
	if !ok {
		v.t.Fatal("no WithdrawalCreated")
	}
	return key
}

func TestDepositAndWithdrawal(t *testing.T) {
	v := newVenue(t, nil)
	m, provider := v.market("ETH/USD"), v.account()
	request := DepositRequest{Market: m, LongAmount: coins(1), ShortAmount: big.NewInt(5_000e6)}
	deposit := v.deposit(v.must(v.client.CreateDeposit(v.ctx, provider, request)))
	v.refused(provider, v.d.cancelCall("cancelDeposit", deposit), "RequestNotYetCancellable")
	v.refused(v.keeper, v.executeDeposit(deposit, v.reports(m, v.now()-1)), "OracleTimestampsAreSmallerThanRequired")
	first, second := v.race(v.executeDeposit(deposit, v.reports(m, v.now())))
	if second.Status != types.ReceiptStatusFailed {
		t.Error("the deposit was executed twice")
	}
	executed := v.has(v.events(first), "DepositExecuted")
	if got := executed.int("receivedMarketTokens"); got.Cmp(coins(8_000)) != 0 {
		t.Errorf("8000 USD bought %s market tokens", got)
	}
	v.refused(v.keeper, v.executeDeposit(deposit, v.reports(m, v.now())), "EmptyDeposit")

	// The pool holds long and short in equal parts, so a withdrawal pays half in each.
	before := v.balance(m.Short, addressOf(provider))
	withdrawal := v.withdrawal(v.must(v.client.CreateWithdrawal(v.ctx, provider,
		WithdrawalRequest{Market: m, MarketTokens: coins(8_000)})))
	v.has(v.events(v.run(v.keeper, v.executeWithdrawal(withdrawal, v.reports(m, v.now())))), "WithdrawalExecuted")
	v.refused(v.keeper, v.executeWithdrawal(withdrawal, v.reports(m, v.now())), "EmptyWithdrawal")
	got := new(big.Int).Sub(v.balance(m.Short, addressOf(provider)), before)
	if low, high := big.NewInt(4_000e6-1_000_000), big.NewInt(4_000e6+1_000_000); got.Cmp(low) < 0 ||
		got.Cmp(high) > 0 {
		t.Errorf("got %s USDC units, want about 4000e6", got)
	}
	v.sumsAddUp()
}

// sumsAddUp checks that every market holds exactly its pool, its positions' collateral, its impact pool and the fees
// that others may claim, and that the vaults are empty when no request is pending.
func (v *venue) sumsAddUp() {
	v.t.Helper()
	for _, m := range v.d.Markets {
		for _, token := range []common.Address{m.Long, m.Short} {
			sum, err := v.client.Uint(v.ctx, "POOL_AMOUNT", m.Address, token)
			if err != nil {
				v.t.Fatal(err)
			}
			for _, part := range []struct {
				name string
				args []any
			}{
				{"COLLATERAL_SUM", []any{m.Address, token, true}}, {"COLLATERAL_SUM", []any{m.Address, token, false}},
				{"SWAP_IMPACT_POOL_AMOUNT", []any{m.Address, token}}, {"CLAIMABLE_FEE_AMOUNT", []any{m.Address, token}},
				{"CLAIMABLE_UI_FEE_AMOUNT", []any{m.Address, token}},
			} {
				amount, err := v.client.Uint(v.ctx, part.name, part.args...)
				if err != nil {
					v.t.Fatal(err)
				}
				sum.Add(sum, amount)
			}
			if held := v.balance(token, m.Address); held.Cmp(sum) != 0 {
				v.t.Errorf("%s holds %s of %s, its books say %s", m.Name, held, token, sum)
			}
		}
	}
	for _, token := range v.d.Tokens {
		for _, vault := range []common.Address{
			v.d.Contracts.OrderVault, v.d.Contracts.DepositVault, v.d.Contracts.ShiftVault, v.d.Contracts.GlvVault,
		} {
			if held := v.balance(token.Address, vault); held.Sign() != 0 {
				v.t.Errorf("vault %s still holds %s of %s", vault, held, token.Symbol)
			}
		}
	}
}
