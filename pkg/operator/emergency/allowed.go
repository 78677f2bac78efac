package emergency

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perpkeeper/pkg/chain"
)

// Allowed is a pattern of the calls that the emergency signer may sign: a contract, and calldata in which '?' stands
// for any one hexadecimal digit. Selector and length are fixed by it.
type Allowed struct {
	To       chain.Address `toml:"to" help:"the contract"`
	Calldata string        `toml:"calldata" help:"0x and hexadecimal digits, ? for any one of them; the selector is always given"`
}

// selectorDigits are those of a function's selector.
const selectorDigits = 8

// Validate returns why the pattern cannot be used, or nil.
func (a Allowed) Validate() error {
	digits, prefixed := strings.CutPrefix(strings.ToLower(a.Calldata), "0x")
	switch {
	case a.To.IsZero():
		return errors.New("to: names no contract")
	case !prefixed || len(digits)%2 != 0 || strings.Trim(digits, "0123456789abcdef?") != "":
		return fmt.Errorf("calldata: %q is not 0x and whole bytes of hexadecimal digits and ?", a.Calldata)
	case len(digits) < selectorDigits || strings.Contains(digits[:selectorDigits], "?"):
		return fmt.Errorf("calldata: %q does not begin with a selector of 4 bytes", a.Calldata)
	}
	return nil
}

// matches reports whether a call is one of the pattern's.
func (a Allowed) matches(to chain.Address, calldata []byte) bool {
	want, got := strings.TrimPrefix(strings.ToLower(a.Calldata), "0x"), hex.EncodeToString(calldata)
	if to != a.To || len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != '?' && want[i] != got[i] {
			return false
		}
	}
	return true
}

// MaySign reports whether the emergency signer may sign a call.
func (c Config) MaySign(to chain.Address, calldata []byte) bool {
	return slices.ContainsFunc(c.Calls, func(a Allowed) bool { return a.matches(to, calldata) })
}
