package price

import (
	"cmp"
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// Report is a price of one token at one moment.
type Report struct {
	Token    chain.Address
	Provider chain.Address // the contract that verifies Data
	Data     []byte        // opaque; empty for a provider that reads the chain itself (OnChain)
	// Min and Max are USD with 30 decimals per smallest unit of the token.
	Min, Max chain.Uint
	// Taken is what the exchange's provider makes of Min and Max, where that is something else; zero otherwise. Sources
	// are compared by what they say, and the price topic has what the exchange takes.
	Taken perp.Price
	// TimeMs is the source's own time, in Unix milliseconds. The contract sees whole seconds of it.
	TimeMs uint64
	// RoundMs is when a price that is read on the chain was written there, in Unix milliseconds: TimeMs is the time of
	// the block it was read in, as for the provider. 0 for all others. No record of the price topic has it: only who
	// compares sources asks.
	RoundMs uint64
	// Source names where the report was had.
	Source string
	// ReceivedMs is when the process that asked for the report got it, in Unix milliseconds of its clock.
	ReceivedMs uint64
}

// Second is the report's time as the contract sees it.
func (r Report) Second() uint64 { return r.TimeMs / 1000 }

// PriceMs is when the price was found, in Unix milliseconds: long before TimeMs, where it was written to the chain then
// and has not changed since. None is written after the block that it is read in, whatever the round says: a later time
// would be compared with nobody's.
func (r Report) PriceMs() uint64 { return min(cmp.Or(r.RoundMs, r.TimeMs), r.TimeMs) }

// OnChain reports whether the exchange's provider reads the price on the chain when the transaction is executed. It is
// of that block then, whatever the report says, and is what stands there then.
func (r Report) OnChain() bool { return len(r.Data) == 0 && !r.Provider.IsZero() }

// StaticSource is the source of the reports of a token whose price the exchange's managers have fixed (v2.2c).
const StaticSource = "fixed by the exchange"

// Stuck is why nothing with the report's token can be executed, whatever is sent; empty where that is not so. The
// exchange's static provider gives the minimum as the maximum and the other way round, and the oracle refuses a pair of
// prices of which the first is above the second (InvalidMinMaxForPrice).
func (r Report) Stuck() string {
	if r.Source != StaticSource || !r.Min.Less(r.Max) {
		return ""
	}
	return fmt.Sprintf("the exchange's managers have fixed the price of token %s at two values, %s and %s, and its "+
		"provider exchanges them: nothing with this token is executed (InvalidMinMaxForPrice) until they set another",
		r.Token, r.Min, r.Max)
}

// ceiling is above every price there can be, in USD with 30 decimals per smallest unit, and small enough that no
// comparison of prices overflows.
var ceiling = chain.Pow10(60)

// ID names the report in the evidence of jobs.
func (r Report) ID() string { return fmt.Sprintf("%s@%d", r.Token, r.TimeMs) }

// Validate reports what makes a report unusable.
func (r Report) Validate() error {
	switch {
	case r.Token.IsZero():
		return errors.New("a report without a token")
	case r.TimeMs < 1000:
		return fmt.Errorf("a report of %s without a time", r.Token)
	case r.Min.IsZero():
		return fmt.Errorf("a report of %s with price zero", r.Token)
	case r.Max.Less(r.Min):
		return fmt.Errorf("a report of %s with a minimum of %s above its maximum of %s", r.Token, r.Min, r.Max)
	case !r.Max.Less(ceiling):
		return fmt.Errorf("a report of %s with a price of %s, which nothing costs", r.Token, r.Max)
	default:
		return nil
	}
}

// Message returns the report as a record of the price topic, with the prices that the exchange takes.
func (r Report) Message() wire.Price {
	taken := r.Taken
	if taken.Max.IsZero() {
		taken = perp.Price{Min: r.Min, Max: r.Max}
	}
	return wire.Price{
		Token: r.Token, Provider: r.Provider, Data: r.Data, Min: taken.Min, Max: taken.Max, TimeMs: r.TimeMs,
		Source: r.Source, ReceivedMs: r.ReceivedMs,
	}
}

// FromMessage returns the report that a record of the price topic holds.
func FromMessage(m wire.Price) Report {
	return Report{
		Token: m.Token, Provider: m.Provider, Data: m.Data, Min: m.Min, Max: m.Max, TimeMs: m.TimeMs, Source: m.Source,
		ReceivedMs: m.ReceivedMs,
	}
}
