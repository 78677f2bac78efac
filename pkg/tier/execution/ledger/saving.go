package ledger

import (
	"fmt"
	"math"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// Ratio is a quotient in thousandths. Ratios are for reading; what they are made of is kept exactly. In JSON it is a
// number such as 0.379.
type Ratio int64

// String writes a ratio as a fraction of three digits.
func (r Ratio) String() string {
	sign := ""
	if r < 0 {
		sign, r = "-", -r
	}
	return fmt.Sprintf("%s%d.%03d", sign, r/1000, r%1000)
}

// MarshalJSON implements json.Marshaler.
func (r Ratio) MarshalJSON() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: a decimal fraction that is not negative, such as 0.3; what is
// finer than a thousandth is an error.
func (r *Ratio) UnmarshalText(text []byte) error {
	thousandths, err := chain.ParseDecimal(string(text), 3)
	n, fits := thousandths.Uint64()
	if err != nil || !fits || n > math.MaxInt32 {
		return fmt.Errorf("%q is no ratio: want a fraction such as 0.3, of three decimals at most", text)
	}
	*r = Ratio(n)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (r Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Percent writes a ratio as percent of one digit.
func (r Ratio) Percent() string {
	sign := ""
	if r < 0 {
		sign, r = "-", -r
	}
	return fmt.Sprintf("%s%d.%d %%", sign, r/10, r%10)
}

// LossRatio is r: the mean gas of losers that came too late over the mean gas of winners. It is not known without one
// of each.
func (s *Sum) LossRatio() (r Ratio, known bool) {
	if s.Late.Count == 0 || s.Late.Gas == 0 || s.Won.Gas == 0 {
		return 0, false
	}
	lost := chain.U64(s.Late.Gas).Mul(chain.U64(uint64(s.Won.Count)))
	won := chain.U64(s.Won.Gas).Mul(chain.U64(uint64(s.Late.Count)))
	thousandths, _ := lost.MulDiv(chain.U64(1000), won).Uint64()
	return Ratio(thousandths), true
}

// Rates are the loss ratios to compute with where the books hold no loser to measure one by.
type Rates map[job.Kind]Ratio

// Saving holds what was spent against what would have been spent if every keeper had sent a transaction for every job:
// one of them wins, and each of the others pays r times as much for nothing.
type Saving struct {
	Spent    uint64 `json:"spentGas"`    // by winners and losers
	Everyone uint64 `json:"everyoneGas"` // if everyone had executed
	Saved    Ratio  `json:"saved"`       // 1 - Spent/Everyone; negative where more was spent than everyone would have
	// AtMost is 1 - winners'/Everyone, which for one kind is (n-1)r/(1+(n-1)r): what sharing saves when nobody loses.
	AtMost Ratio `json:"atMost"`
	// Assumed is true when a loss ratio was taken from [Rates] for want of losers.
	Assumed bool `json:"assumed"`
}

// of returns the loss ratio of a kind: the measured one, or else the given one.
func (r Rates) of(s *Sum) (ratio Ratio, known bool) {
	if ratio, known = s.LossRatio(); !known {
		ratio, known = r[s.Kind]
	}
	return ratio, known
}

// Saving computes for n keepers over the given kinds. It is not known where a kind with winners has no loss ratio,
// neither measured nor given.
func (r Rates) Saving(keepers int, kinds ...*Sum) (s Saving, known bool) {
	var won uint64
	for _, k := range kinds {
		ratio, known := r.of(k)
		if !known && k.Won.Gas > 0 {
			return Saving{}, false
		}
		_, measured := k.LossRatio()
		s.Assumed = s.Assumed || !measured && k.Won.Gas > 0
		won += k.Won.Gas
		s.Spent += k.Won.Gas + k.Late.Gas + k.Early.Gas
		s.Everyone += k.Won.Gas + k.Won.Gas*uint64(keepers-1)*uint64(ratio)/1000
	}
	if won == 0 {
		return Saving{}, false
	}
	s.Saved, s.AtMost = oneMinus(s.Spent, s.Everyone), oneMinus(won, s.Everyone)
	return s, true
}

// oneMinus is 1 - part/whole, rounded to the nearest thousandth, down at the middle.
func oneMinus(part, whole uint64) Ratio {
	return 1000 - Ratio((part*1000+whole/2)/whole)
}
