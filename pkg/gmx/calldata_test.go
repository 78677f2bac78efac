package gmx

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// referenceMethod builds a method for go-ethereum: the named arguments, then the price reports.
func referenceMethod(name string, arguments ...string) abi.Method {
	var inputs abi.Arguments
	add := func(t string, components ...abi.ArgumentMarshaling) {
		typ, err := abi.NewType(t, "", components)
		if err != nil {
			panic(err)
		}
		inputs = append(inputs, abi.Argument{Type: typ})
	}
	for _, t := range arguments {
		add(t)
	}
	add("tuple", abi.ArgumentMarshaling{Name: "tokens", Type: "address[]"},
		abi.ArgumentMarshaling{Name: "providers", Type: "address[]"},
		abi.ArgumentMarshaling{Name: "data", Type: "bytes[]"})
	return abi.NewMethod(name, name, abi.Function, "nonpayable", false, false, inputs, nil)
}

func referenceCall(t interface{ Fatalf(string, ...any) }, m abi.Method, p SetPrices, arguments ...any) []byte {
	prices := struct {
		Tokens, Providers []common.Address
		Data              [][]byte
	}{Data: p.Data}
	for i := range p.Tokens {
		prices.Tokens = append(prices.Tokens, common.Address(p.Tokens[i]))
		prices.Providers = append(prices.Providers, common.Address(p.Providers[i]))
	}
	packed, err := m.Inputs.Pack(append(arguments, prices)...)
	if err != nil {
		t.Fatalf("go-ethereum refuses: %v", err)
	}
	return append(m.ID, packed...)
}

func drawPrices(t *rapid.T) (p SetPrices) {
	for range rapid.IntRange(0, 4).Draw(t, "tokens") {
		p.Tokens = append(p.Tokens, chain.Address(drawBytes(t, 20)))
		p.Providers = append(p.Providers, chain.Address(drawBytes(t, 20)))
		p.Data = append(p.Data, rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "report"))
	}
	return p
}

// Selectors are those of the contracts' documentation; encodings are go-ethereum's.
func TestCallsByKey(t *testing.T) {
	for name, test := range map[string]struct {
		selector string
		kind     job.Kind
	}{
		"executeOrder":         {"7ebc83f7", job.Order},
		"executeDeposit":       {"c30d8910", job.Deposit},
		"executeWithdrawal":    {"c96fea9f", job.Withdrawal},
		"executeShift":         {"c68f53c1", job.Shift},
		"executeGlvDeposit":    {"5ee8ec8f", job.GlvDeposit},
		"executeGlvWithdrawal": {"0910f3f9", job.GlvWithdrawal},
		"executeGlvShift":      {"bf1fb411", job.GlvShift},
	} {
		method := referenceMethod(name, "bytes32")
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			key, prices := chain.Hash(drawBytes(t, 32)), drawPrices(t)
			got := executions[test.kind].encode(job.Job{Kind: test.kind, Key: key}, prices)
			if want := referenceCall(t, method, prices, [32]byte(key)); !bytes.Equal(got, want) {
				t.Fatalf("got  %x\nwant %x", got, want)
			}
			if hex.EncodeToString(got[:4]) != test.selector {
				t.Fatalf("selector %x, want %s", got[:4], test.selector)
			}
		}))
	}
}

func TestCallsByPosition(t *testing.T) {
	liquidation := referenceMethod("executeLiquidation", "address", "address", "address", "bool")
	update := referenceMethod("updateAdlState", "address", "bool")
	adl := referenceMethod("executeAdl", "address", "address", "address", "bool", "uint256")
	rapid.Check(t, func(t *rapid.T) {
		account, market, collateral := chain.Address(drawBytes(t, 20)), chain.Address(drawBytes(t, 20)),
			chain.Address(drawBytes(t, 20))
		isLong, size, prices := rapid.Bool().Draw(t, "long"), chain.UintFromBytes(drawBytes(t, 32)), drawPrices(t)
		words := []any{common.Address(account), common.Address(market), common.Address(collateral), isLong}
		encode := func(kind job.Kind) []byte {
			return executions[kind].encode(job.Job{Kind: kind, Account: account, Market: market, Collateral: collateral,
				IsLong: isLong, SizeDeltaUsd: size}, prices)
		}
		got := encode(job.Liquidation)
		if want := referenceCall(t, liquidation, prices, words...); !bytes.Equal(got, want) ||
			hex.EncodeToString(got[:4]) != "109ebc49" {
			t.Fatalf("liquidation: got  %x\nwant %x", got, want)
		}
		got = encode(job.Adl)
		if want := referenceCall(t, adl, prices, append(words, size.Big())...); !bytes.Equal(got, want) ||
			hex.EncodeToString(got[:4]) != "f09f032d" {
			t.Fatalf("adl: got  %x\nwant %x", got, want)
		}
		got = encode(job.AdlState)
		if want := referenceCall(t, update, prices, common.Address(market), isLong); !bytes.Equal(got, want) ||
			hex.EncodeToString(got[:4]) != "12a758f0" {
			t.Fatalf("adl state: got  %x\nwant %x", got, want)
		}
	})
}

// TIER-13: every kind of job goes to its own handler with its own call.
func TestCallOfEveryJob(t *testing.T) {
	key, account, market, collateral := chain.Hash{0xaa}, chain.Address{0xbb}, chain.Address{0xcc}, chain.Address{0xdd}
	prices := SetPrices{Tokens: []chain.Address{{1}}, Providers: []chain.Address{{2}}, Data: [][]byte{{3}}}
	want, c := every(), everyHandler
	for _, kind := range job.Kinds() {
		j := job.Job{ID: "j", Kind: kind, Key: key, Account: account, Market: market, Collateral: collateral,
			IsLong: true, SizeDeltaUsd: chain.U64(5)}
		to, calldata, err := c.Call(j, prices)
		read, is := ReadCall(calldata)
		if err != nil || to != want[kind] || !is || read.Kind != kind {
			t.Errorf("%s: %s, %x, %v", kind, to, calldata, err)
		}
		if _, _, err := (Venue{}).Call(j, prices); err == nil ||
			!strings.Contains(err.Error(), "no contract with the role CONTROLLER") {
			t.Errorf("%s without a handler: %v", kind, err)
		}
		if _, _, err := c.Call(j, SetPrices{Tokens: prices.Tokens}); err == nil {
			t.Errorf("%s with a token that has no report was encoded", kind)
		}
	}
	if _, _, err := c.Call(job.Job{Kind: "dance"}, prices); err == nil {
		t.Error("an unknown kind was encoded")
	}
}

// Cancels go to the handler that would have executed what expired, with its key alone, and are no call for a job whose
// reports could be read.
func TestCallOfEveryCancel(t *testing.T) {
	c, key := everyHandler, chain.Hash{0xaa}
	want := map[job.Kind]string{"cancelOrder": "0x7489ec23", "cancelDeposit": "0x31404484",
		"cancelWithdrawal": "0x7213c5a0", "cancelShift": "0x96be2898", "cancelGlvDeposit": "0xd95c9e29",
		"cancelGlvWithdrawal": "0x0e229c35"}
	for _, kind := range job.Cancels() {
		of, _ := kind.Cancels()
		to, calldata, err := c.Call(job.Job{ID: "j", Kind: kind, Key: key}, SetPrices{})
		executor, _, _ := c.Call(job.Job{Kind: of}, SetPrices{})
		if err != nil || to != executor || !bytes.Equal(calldata, append(unhex(t, want[kind]), key[:]...)) {
			t.Errorf("%s: %s, %x, %v", kind, to, calldata, err)
		}
		if _, is := ReadCall(calldata); is {
			t.Errorf("%s is read as an execution", kind)
		}
		// measured on the original contracts: 441 576 to 554 539
		if gas := DefaultGasWords().Limit(Work{Kind: kind}); gas < 2*441_576 || gas > 2*554_539 {
			t.Errorf("%s: a limit of %d gas", kind, gas)
		}
	}
	if len(want) != len(job.Cancels()) {
		t.Errorf("there are %v", job.Cancels())
	}
	if _, _, err := (Venue{}).Call(job.Job{Kind: "cancelShift"}, SetPrices{}); err == nil {
		t.Error("a cancel without a handler was encoded")
	}
}

func TestConfigNamesTheDataStore(t *testing.T) {
	if DefaultConfig().Validate() == nil {
		t.Error("a configuration without a DataStore is accepted")
	}
	if err := (Config{DataStore: chain.Address{1}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestTopics(t *testing.T) {
	want := []string{
		"0x7e3bde2ba7aca4a8499608ca57f3b0c1c1c93ace63ffd3741a9fab204146fc9a",
		"0x137a44067c8961cd7e1d876f4754a5a3a75989b4552f1843fc69c3b372def160",
		"0x468a25a7ba624ceea6e540ad6f49171b52495b648417ae91bca21676d8a24dc5",
	}
	got := Topics()
	if len(got) != 1 || len(got[0]) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i, h := range got[0] {
		if h.Hex() != want[i] {
			t.Errorf("topic %d: %s, want %s", i, h, want[i])
		}
	}
}
