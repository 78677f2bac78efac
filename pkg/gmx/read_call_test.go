package gmx

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// every names a contract of its own for each kind of job.
func every() map[job.Kind]chain.Address {
	executes := map[job.Kind]chain.Address{}
	for i, kind := range job.Kinds() {
		executes[kind] = chain.Address{0xc0, byte(i)}
	}
	return executes
}

// everyHandler is a venue that has them all.
var everyHandler = VenueOf(emitter, every())

// TestReadCallInvertsCall: for every kind of job the calldata says which job it was made for.
func TestReadCallInvertsCall(t *testing.T) {
	address := rapid.Custom(func(t *rapid.T) (a chain.Address) {
		copy(a[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		j := job.Job{
			Kind: rapid.SampledFrom(job.Kinds()).Draw(t, "kind"), Account: address.Draw(t, "account"),
			Market:     address.Draw(t, "market"),
			Collateral: address.Draw(t, "collateral"), IsLong: rapid.Bool().Draw(t, "long"),
			SizeDeltaUsd: chain.U64(rapid.Uint64().Draw(t, "size")),
		}
		want := Call{Kind: j.Kind}
		switch j.Kind {
		case job.Liquidation, job.Adl:
			j.Key, want.IsLong = perp.PositionKey(j.Account, j.Market, j.Collateral, j.IsLong), j.IsLong
		case job.AdlState:
			j.Key, want.IsLong = j.Market.Hash(), j.IsLong
		default:
			j.Key = chain.Keccak256(j.Account[:])
		}
		want.Key = j.Key
		report := rapid.SliceOf(rapid.Byte()).Draw(t, "report")
		_, calldata, err := everyHandler.Call(j,
			SetPrices{Tokens: []chain.Address{{1}}, Providers: []chain.Address{{2}}, Data: [][]byte{report}})
		if err != nil {
			t.Fatal(err)
		}
		if got, is := ReadCall(calldata); !is || got != want {
			t.Fatalf("read %+v %t of %+v", got, is, want)
		}
	})
}

// FuzzReadCall: nothing panics, and what is read as a call is long enough to be one.
func FuzzReadCall(f *testing.F) {
	for kind, e := range executions {
		f.Add(e.encode(job.Job{Kind: kind, Key: chain.Hash{1}, Account: chain.Address{1}, Market: chain.Address{2},
			Collateral: chain.Address{3}, IsLong: true, SizeDeltaUsd: chain.U64(1)}, SetPrices{}))
	}
	f.Fuzz(func(t *testing.T, calldata []byte) {
		before := bytes.Clone(calldata)
		if _, is := ReadCall(calldata); is && len(calldata) < 36 {
			t.Fatalf("%x is no call", calldata)
		}
		if !bytes.Equal(before, calldata) {
			t.Fatal("the calldata was changed")
		}
	})
}
