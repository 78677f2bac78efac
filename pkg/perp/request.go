package perp

import (
	"encoding/hex"
	"fmt"
	"strings"

	"perpkeeper/pkg/chain"
)

// RequestKind is what a two-step request asks for.
type RequestKind string

// The kinds of requests.
const (
	Deposit       RequestKind = "deposit"
	Withdrawal    RequestKind = "withdrawal"
	Shift         RequestKind = "shift"
	GlvDeposit    RequestKind = "glvDeposit"
	GlvWithdrawal RequestKind = "glvWithdrawal"
	GlvShift      RequestKind = "glvShift"
)

// RequestKinds lists every kind.
func RequestKinds() []RequestKind {
	return []RequestKind{Deposit, Withdrawal, Shift, GlvDeposit, GlvWithdrawal, GlvShift}
}

// Request is a deposit, withdrawal or shift waiting for a keeper, or what became of it. The fields rules ask for are
// typed; Fields holds every item of the Created event under its own name.
type Request struct {
	Kind          RequestKind
	Key           chain.Hash
	Account       chain.Address // zero for a GLV shift, which belongs to no account
	Market        chain.Address // the market, or the shift's source market
	UpdatedAtTime chain.Uint
	Fields        Fields
	Status        Status
	Reason        string
	ReasonBytes   Bytes
	Birth         Stamp
	Stamp         Stamp
}

// RowKey implements [Row].
func (r Request) RowKey() RowKey { return RowKey{Requests, r.Key} }

// SwapPath are the markets in which the tokens of a request are swapped, by the names of the Created events: of all its
// paths.
func (r Request) SwapPath() (markets []chain.Address) {
	for _, item := range []string{"longTokenSwapPath", "shortTokenSwapPath"} {
		path, _ := r.Fields[item].([]chain.Address)
		markets = append(markets, path...)
	}
	return markets
}

// OtherMarkets are those that a request names beside its own: where it goes to, and its swap path. The markets of its
// GLV are not among them.
func (r Request) OtherMarkets() []chain.Address {
	markets := r.SwapPath()
	if to, named := r.Fields["toMarket"].(chain.Address); named {
		markets = append(markets, to)
	}
	return markets
}

// Glv is the GLV that a request is about; zero where it is about none.
func (r Request) Glv() chain.Address {
	glv, _ := r.Fields["glv"].(chain.Address)
	return glv
}

// Fields are named items of an event: chain.Address, Uint, Int, bool, chain.Hash, Bytes, string, and slices of them.
// Their JSON form is numbers as decimal strings, addresses and bytes as 0x text.
type Fields map[string]any

// Bytes is a byte string whose text is 0x and hexadecimal digits.
type Bytes []byte

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) { return []byte("0x" + hex.EncodeToString(b)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	digits, ok := strings.CutPrefix(string(text), "0x")
	if !ok {
		return fmt.Errorf("%q is no byte string: want 0x and hexadecimal digits", text)
	}
	*b, err = hex.DecodeString(digits)
	return err
}
