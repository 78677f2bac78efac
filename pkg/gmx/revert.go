package gmx

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// RevertClass is what a revert means for a job.
type RevertClass string

// The classes of reverts. Only NeedsReport and NeedsGas can be mended by the keeper that met them.
const (
	// DoneElsewhere: the order, request or position is gone. Another keeper or the owner was faster.
	DoneElsewhere RevertClass = "done_elsewhere"
	// Recovered: the condition for the job does not hold (any more): a healthy position, a trigger price not reached.
	Recovered RevertClass = "recovered"
	// NeedsReport: a price report is missing, too old, too new or refused.
	NeedsReport RevertClass = "needs_report"
	// NeedsGas: the gas limit was too low.
	NeedsGas RevertClass = "needs_gas"
	// NeedsRole: the signer lacks a role, or the handler does, which the exchange has replaced then.
	NeedsRole RevertClass = "needs_role"
	// NotNow: the exchange has switched off a feature or a market, or cannot price a token, whatever is sent. The job
	// is as due as before, and may be executed in the block after its managers have switched it on again.
	NotNow RevertClass = "not_now"
	// TokenRefuses: a token does not let itself be moved, because it is paused or an account is on its list. It may
	// take its issuer days to change that.
	TokenRefuses RevertClass = "token_refuses"
	// Expired: no report can be young enough for the job and old enough for the request; only the owner can still
	// cancel.
	Expired RevertClass = "expired"
	// CancelsOrFreezes: the request's own terms cannot be met, or the market cannot take it. The exchange answers this
	// by cancelling the request or freezing the order, in a transaction that succeeds: it is the cause in the event's
	// reasonBytes. As a revert it means that the order is frozen already, or that there is no request to end
	// (liquidations, deleveragings).
	CancelsOrFreezes RevertClass = "cancels_or_freezes"
	// UnknownRevert: any other cause, or one this package cannot read. It shows nothing about the job.
	UnknownRevert RevertClass = "unknown"
)

// Revert is a decoded custom error of the contracts. It is an error itself.
type Revert struct { //nolint:errname // the field's word; it is read as a value more than it is returned
	Class RevertClass
	// Name is empty when the selector is unknown.
	Name string
	// Args are in the order of the error's arguments; arrays are left out. It is nil when the data is cut short.
	Args []RevertArg
	Data []byte
}

// RevertArg is one argument: a chain.Address, chain.Uint, chain.Int, bool, chain.Hash, perp.Bytes or string.
type RevertArg struct {
	Name  string
	Value any
}

// Error returns the error as the contracts' source writes it, with values.
func (r Revert) Error() string {
	if r.Name == "" {
		return "revert 0x" + hex.EncodeToString(r.Data[:min(len(r.Data), 36)])
	}
	args := make([]string, len(r.Args))
	for i, a := range r.Args {
		args[i] = fmt.Sprintf("%s %v", a.Name, a.Value)
	}
	return r.Name + "(" + strings.Join(args, ", ") + ")"
}

// Int returns a signed argument by name, such as remainingCollateralUsd (30 decimals) of PositionShouldNotBeLiquidated.
func (r Revert) Int(name string) (value chain.Int, ok bool) {
	for _, a := range r.Args {
		if a.Name == name {
			value, ok = a.Value.(chain.Int)
		}
	}
	return value, ok
}

// uint returns an unsigned argument by name, such as startingGas of InsufficientExecutionGas.
func (r Revert) uint(name string) (value chain.Uint, ok bool) {
	for _, a := range r.Args {
		if a.Name == name {
			value, ok = a.Value.(chain.Uint)
		}
	}
	return value, ok
}

// DecodeRevert reads the data of a revert. It never fails: what it cannot read is an [UnknownRevert].
func DecodeRevert(data []byte) Revert {
	r := Revert{Class: UnknownRevert, Data: data}
	if len(data) < 4 {
		return r
	}
	known, ok := customErrors()[[4]byte(data[:4])]
	if !ok {
		return r
	}
	r.Class, r.Name = known.class, known.name
	w := &walker{data: data[4:]}
	for i, p := range known.params {
		if value := p.read(w, 32*i); value != nil {
			r.Args = append(r.Args, RevertArg{Name: p.name, Value: value})
		}
	}
	if w.err != nil {
		r.Args = nil
	}
	return r
}

type customError struct {
	class  RevertClass
	name   string
	params []param
}

// param is one argument of an error, by its Solidity type.
type param struct{ kind, name string }

func (p param) read(w *walker, slot int) any {
	switch {
	case strings.HasSuffix(p.kind, "[]"):
		return nil
	case p.kind == "address":
		return w.address(slot)
	case p.kind == "bool":
		return w.bool(slot)
	case p.kind == "bytes32":
		return w.word(slot)
	case p.kind == "bytes":
		return w.bytes(w.size(slot))
	case p.kind == "string":
		return w.text(w.size(slot))
	case strings.HasPrefix(p.kind, "uint"):
		return w.uint(slot)
	case strings.HasPrefix(p.kind, "int"):
		return w.int(slot)
	}
	panic("no reader for arguments of type " + p.kind)
}

// errorList holds every custom error of the contracts (v2.2c, those of before that it dropped, and those of a BEP-702
// token that refuses a transfer), a line each: its class, then its declaration. That a request is not there any more
// are two errors of each kind's own, named after it, and not listed.
//
//go:embed errors.txt
var errorList string

// customErrors holds every error by its selector.
var customErrors = sync.OnceValue(func() map[[4]byte]customError {
	errors := map[[4]byte]customError{}
	list := func(class, declaration string) {
		name, rest, _ := strings.Cut(declaration, "(")
		e := customError{class: RevertClass(class), name: name}
		var kinds []string
		if arguments := strings.TrimSuffix(rest, ")"); arguments != "" {
			for argument := range strings.SplitSeq(arguments, ", ") {
				kind, name, _ := strings.Cut(argument, " ")
				e.params = append(e.params, param{kind, name})
				kinds = append(kinds, kind)
			}
		}
		errors[selector(name+"("+strings.Join(kinds, ",")+")")] = e
	}
	for line := range strings.Lines(errorList) {
		class, declaration, _ := strings.Cut(strings.TrimSpace(line), " ")
		list(class, declaration)
	}
	for _, kind := range perp.RequestKinds() {
		list(string(DoneElsewhere), eventPrefix(kind)+"NotFound(bytes32 key)")
		list(string(DoneElsewhere), "Empty"+eventPrefix(kind)+"()")
	}
	// The compiler's own.
	list(string(UnknownRevert), "Error(string message)")
	list(string(UnknownRevert), "Panic(uint256 code)")
	return errors
})
