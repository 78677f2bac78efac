package gmx

import (
	"bytes"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

const configABI = `[
	{"type":"function","name":"setBool","inputs":[{"name":"baseKey","type":"bytes32"},
		{"name":"data","type":"bytes"},{"name":"value","type":"bool"}]},
	{"type":"function","name":"setUint","inputs":[{"name":"baseKey","type":"bytes32"},{"name":"data","type":"bytes"},{"name":"value","type":"uint256"}]}]`

// LIQ-15: the calldata is what a compiler's encoder makes of the same call, also of the way back.
func TestAdjustments(t *testing.T) {
	contract, err := abi.JSON(strings.NewReader(configABI))
	if err != nil {
		t.Fatal(err)
	}
	pack := func(name, key string, data []byte, value any) []byte {
		t.Helper()
		packed, err := contract.Pack(name, [32]byte(perp.BaseKey(key)), data, value)
		if err != nil {
			t.Fatal(err)
		}
		return packed
	}
	word := func(b []byte) []byte { return common.LeftPadBytes(b, 32) }

	handler := chain.Address{0xaa, 1}
	all, err := Venue{Handlers: []Handler{{Address: handler, Kinds: []job.Kind{job.Order}}}}.PausePositions()
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	for i, kind := range []byte{2, 3, 8} {
		args := append(word(handler[:]), word([]byte{kind})...)
		if want := pack("setBool", "CREATE_ORDER_FEATURE_DISABLED", args, true); !bytes.Equal(all[i].Data, want) {
			t.Errorf("order type %d:\n got %x\nwant %x", kind, all[i].Data, want)
		}
		if want := pack("setBool", "CREATE_ORDER_FEATURE_DISABLED", args, false); !bytes.Equal(all[i].Undo, want) {
			t.Errorf("the way back of order type %d:\n got %x\nwant %x", kind, all[i].Undo, want)
		}
	}
	if _, err := (Venue{}).PausePositions(); err == nil {
		t.Error("a venue without a handler can be paused")
	}

	market, half := chain.Address{0xbb, 2}, chain.Pow10(28)
	a := RaiseMargin(market, half, 150)
	raised := new(big.Int).Div(new(big.Int).Mul(half.Big(), big.NewInt(3)), big.NewInt(2))
	if want := pack("setUint", "MIN_COLLATERAL_FACTOR", word(market[:]), raised); !bytes.Equal(a.Data, want) {
		t.Errorf("got %x\nwant %x", a.Data, want)
	}
	if want := pack("setUint", "MIN_COLLATERAL_FACTOR", word(market[:]), half.Big()); !bytes.Equal(a.Undo, want) {
		t.Errorf("the way back: got %x\nwant %x", a.Undo, want)
	}
}
