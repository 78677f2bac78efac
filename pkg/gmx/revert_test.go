package gmx

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Selectors are those of the contracts' documentation, which observed many of them on a chain.
func TestRevertClasses(t *testing.T) {
	for _, test := range []struct {
		selector string
		name     string
		class    RevertClass
	}{
		{"0x16307797", "EmptyOrder", DoneElsewhere},
		{"0x95b66fe9", "EmptyDeposit", DoneElsewhere},
		{"0x6d4bb5e9", "EmptyWithdrawal", DoneElsewhere},
		{"0x6af5e96f", "EmptyShift", DoneElsewhere},
		{"0x057058b6", "GlvDepositNotFound", DoneElsewhere},
		{"0x20dcb068", "GlvWithdrawalNotFound", DoneElsewhere},
		{"0xde45e162", "GlvShiftNotFound", DoneElsewhere},
		{"0xee919dd9", "PositionShouldNotBeLiquidated", Recovered},
		{"0x0481a15a", "InvalidOrderPrices", Recovered},
		{"0xcf9319d6", "OrderValidFromTimeNotReached", Recovered},
		{"0x3285dc57", "AdlNotEnabled", Recovered},
		{"0xd06ed8be", "AdlNotRequired", Recovered},
		{"0x720bb461", "InvalidSizeDeltaForAdl", Recovered},
		{"0x7d677abf", "OracleTimestampsAreSmallerThanRequired", NeedsReport},
		{"0x2b6e7c3f", "MaxPriceAgeExceeded", NeedsReport},
		{"0xdd9c6b9a", "MaxOracleTimestampRangeExceeded", NeedsReport},
		{"0x3d1986f7", "MaxRefPriceDeviationExceeded", NeedsReport},
		{"0xcd64a025", "EmptyPrimaryPrice", NeedsReport},
		{"0x05d102a2", "InvalidOracleProvider", NeedsReport},
		{"0x68b49e6c", "InvalidOracleProviderForToken", NeedsReport},
		{"0xbb416f93", "InsufficientExecutionGas", NeedsGas},
		{"0xd3dacaac", "InsufficientGasForCancellation", NeedsGas},
		{"0xa35b150b", "Unauthorized", NeedsRole},
		{"0xdd70e0c9", "DisabledFeature", NotNow},
		{"0x09f8c937", "DisabledMarket", NotNow},
		{"0xe5feddc0", "InvalidKeeperForFrozenOrder", NeedsRole},
		{"0x032b3d00", "SequencerDown", NotNow},
		{"0x113cfc03", "SequencerGraceDurationNotYetPassed", NotNow},
		{"0xd84b8ee8", "OracleTimestampsAreLargerThanRequestExpirationTime", Expired},
		{"0xe09ad0e9", "OrderNotFulfillableAtAcceptablePrice", CancelsOrFreezes},
		{"0x730d44b1", "OrderAlreadyFrozen", UnknownRevert},
		{"0x1d4fc3c0", "InvalidAdl", UnknownRevert},
		{"0x9f0bc7de", "PnlOvercorrected", Recovered},
		{"0x9fbe2cbc", "InvalidDecreaseOrderSize", CancelsOrFreezes},
		{"0xe8266438", "RequestNotYetCancellable", NotNow},
		{"0x1608d41a", "InvalidMinMaxForPrice", NotNow},
		{"0x8bb8feae", "StaticPriceNotSet", NotNow},
		{"0x2136ecd2", "InvalidTwapCount", UnknownRevert},
		{"0x7b5423a1", "InvalidInterval", UnknownRevert},
		{"0xd5bd26f2", "InvalidPriceFeed", UnknownRevert},
		{"0x4e48dcda", "EndOfOracleSimulation", UnknownRevert},
		{"0x08c379a0", "Error", UnknownRevert},
		{"0x4e487b71", "Panic", UnknownRevert},
		{"0xdeadbeef", "", UnknownRevert},
		{"0x1630", "", UnknownRevert},
		{"0x", "", UnknownRevert},
	} {
		r := DecodeRevert(unhex(t, test.selector))
		if r.Name != test.name || r.Class != test.class {
			t.Errorf("%s is %s, %s; want %s, %s", test.selector, r.Name, r.Class, test.name, test.class)
		}
	}
}

func packError(t testing.TB, signature string, values ...any) []byte {
	t.Helper()
	sel := selector(signature)
	var arguments abi.Arguments
	kinds := strings.TrimSuffix(signature[strings.Index(signature, "(")+1:], ")")
	for kind := range strings.SplitSeq(kinds, ",") {
		typ, err := abi.NewType(kind, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, abi.Argument{Type: typ})
	}
	packed, err := arguments.Pack(values...)
	if err != nil {
		t.Fatal(err)
	}
	return append(sel[:], packed...)
}

// A healthy position's revert carries the exact numbers.
func TestRevertNumbers(t *testing.T) {
	remaining, ok := new(big.Int).SetString("-14041784399773486299992309747276300", 10)
	if !ok {
		t.Fatal("bad number")
	}
	r := DecodeRevert(packError(t, "PositionShouldNotBeLiquidated(string,int256,int256,int256)", "min collateral",
		remaining, big.NewInt(5), big.NewInt(6)))
	for name, want := range map[string]string{
		"remainingCollateralUsd": remaining.String(), "minCollateralUsd": "5", "minCollateralUsdForLeverage": "6",
	} {
		if got, ok := r.Int(name); !ok || got.String() != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if want := "PositionShouldNotBeLiquidated(reason min collateral, remainingCollateralUsd " + remaining.String() +
		", minCollateralUsd 5, minCollateralUsdForLeverage 6)"; r.Error() != want {
		t.Errorf("got %s", r.Error())
	}
	if _, ok := r.Int("reason"); ok {
		t.Error("a text was given as a number")
	}
}

func TestRevertArguments(t *testing.T) {
	r := DecodeRevert(packError(t, "Unauthorized(address,string)", common.Address{0xaa}, "ORDER_KEEPER"))
	if len(r.Args) != 2 || r.Args[0] != (RevertArg{"msgSender", chain.Address{0xaa}}) ||
		r.Args[1] != (RevertArg{"role", "ORDER_KEEPER"}) {
		t.Errorf("got %+v", r.Args)
	}
	r = DecodeRevert(packError(t, "InvalidDataStreamPrices(address,int192,int192)", common.Address{1}, big.NewInt(-7),
		big.NewInt(8)))
	if v, ok := r.Int("bid"); !ok || v != chain.I64(-7) || r.Class != NeedsReport {
		t.Errorf("got %+v", r)
	}
	r = DecodeRevert(packError(t, "ArrayOutOfBoundsUint256(uint256[],uint256,string)", []*big.Int{big.NewInt(1)},
		big.NewInt(4), "prices"))
	if len(r.Args) != 2 || r.Args[0] != (RevertArg{"index", chain.U64(4)}) {
		t.Errorf("got %+v", r.Args)
	}
	whole := packError(t, "MaxPriceAgeExceeded(uint256,uint256)", big.NewInt(1), big.NewInt(2))
	if r := DecodeRevert(whole[:40]); r.Class != NeedsReport || r.Args != nil {
		t.Errorf("cut short: %+v", r)
	}
	if r := DecodeRevert(unhex(t, "0xdeadbeef01")); r.Error() != "revert 0xdeadbeef01" {
		t.Errorf("got %s", r.Error())
	}
}

func TestErrorListIsWhole(t *testing.T) {
	known := map[RevertClass]bool{DoneElsewhere: true, Recovered: true, NeedsReport: true, NeedsGas: true,
		NeedsRole: true, NotNow: true, TokenRefuses: true, Expired: true,
		CancelsOrFreezes: true, UnknownRevert: true}
	for _, e := range customErrors() {
		if !known[e.class] || e.name == "" {
			t.Errorf("bad entry %+v", e)
		}
		for i, p := range e.params {
			if p.name == "" {
				t.Errorf("%s: argument %d has no name", e.name, i)
			}
			p.read(&walker{}, 0) // panics on a type without a reader
		}
	}
	// <Kind>NotFound and Empty<Kind>, and the compiler's own
	want := strings.Count(errorList, "\n") + 2*len(perp.RequestKinds()) + 2
	if n := len(customErrors()); n != want {
		t.Errorf("%d errors, want %d: two have one selector, or pkg/gmx/errors.txt lists what follows from a kind of "+
			"request", n, want)
	}
}

// declarations are those of the contracts' own list of errors where it is at hand, else of ours.
func declarations(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "reference", "gmx", "errors.md"))
	if err != nil {
		t.Log("no errors.md beside this repository: the committed list stands in")
		for line := range strings.Lines(errorList) {
			_, declaration, _ := strings.Cut(strings.TrimSpace(line), " ")
			list = append(list, declaration)
		}
		return list
	}
	for line := range strings.Lines(string(text)) {
		if declaration, is := strings.CutPrefix(strings.TrimSpace(line), "- `"); is {
			list = append(list, strings.TrimSuffix(declaration, "`"))
		}
	}
	return list
}

// Every error of the contracts is recognised by name, with its arguments, by the selector that go-ethereum gives it.
func TestEveryErrorIsKnown(t *testing.T) {
	list := declarations(t)
	if len(list) < 300 {
		t.Fatalf("only %d errors are listed", len(list))
	}
	for _, declaration := range list {
		name, rest, _ := strings.Cut(declaration, "(")
		var inputs abi.Arguments
		for argument := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ", ") {
			if argument == "" {
				continue
			}
			kind, argumentName, _ := strings.Cut(argument, " ")
			typ, err := abi.NewType(kind, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			inputs = append(inputs, abi.Argument{Name: argumentName, Type: typ})
		}
		id := abi.NewError(name, inputs).ID
		r := DecodeRevert(append(id[:4:4], make([]byte, 64*len(inputs))...))
		if r.Name != name {
			t.Errorf("%s (%x) is read as %q", declaration, id[:4], r.Name)
		}
		for i, a := range r.Args {
			if !slices.ContainsFunc(inputs, func(in abi.Argument) bool { return in.Name == a.Name }) {
				t.Errorf("%s: argument %d is read as %q", declaration, i, a.Name)
			}
		}
	}
}

func FuzzDecodeRevert(f *testing.F) {
	f.Add(packError(f, "PositionShouldNotBeLiquidated(string,int256,int256,int256)", "r", big.NewInt(1), big.NewInt(2),
		big.NewInt(3)))
	f.Add(packError(f, "ExternalCallFailed(bytes)", []byte{1, 2, 3}))
	f.Add([]byte{0x16, 0x30, 0x77, 0x97})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := DecodeRevert(data)
		if !bytes.Equal(r.Data, data) || r.Error() == "" {
			t.Errorf("%x: %+v", data, r)
		}
	})
}
