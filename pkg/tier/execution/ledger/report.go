package ledger

// Report is the totals of the books.
type Report struct {
	// Keepers is how many keepers share the jobs: what is saved is against as many that do not.
	Keepers int          `json:"keepers"`
	Kinds   []KindReport `json:"kinds"`
	All     KindReport   `json:"all"`
	Other   Cost         `json:"other"` // see [Totals]
}

// KindReport is a [Sum] and what follows from it.
type KindReport struct {
	*Sum
	// Ages are those of requests; of liquidations and trigger orders there are lower bounds only.
	Ages      Ages `json:"ages"`
	AgesAbove Ages `json:"agesAbove"`
	// LossRatio is r, nil where it is neither measured nor given. Of all kinds together there is none.
	LossRatio *Ratio  `json:"r,omitempty"`
	Saving    *Saving `json:"saving,omitempty"` // nil where a loss ratio is missing
}

// Report computes for so many keepers, with the given loss ratios where the books hold none.
func (t Totals) Report(keepers int, rates Rates) Report {
	r := Report{Keepers: keepers, Other: t.Other}
	sums := t.Kinds()
	for _, s := range sums {
		k := reportOf(s, keepers, rates, s)
		if ratio, known := rates.of(s); known {
			k.LossRatio = &ratio
		}
		r.Kinds = append(r.Kinds, k)
	}
	r.All = reportOf(t.All(), keepers, rates, sums...)
	return r
}

func reportOf(s *Sum, keepers int, rates Rates, kinds ...*Sum) KindReport {
	k := KindReport{Sum: s, Ages: s.Ages(ByRequest), AgesAbove: s.Ages(ByReports)}
	if saving, known := rates.Saving(keepers, kinds...); known {
		k.Saving = &saving
	}
	return k
}
