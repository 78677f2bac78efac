package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/risk/due"
)

var priceChecks = []check{
	{"price-sources", "prices", false, func(f *Facts, found report) {
		if len(f.Sources) == 0 {
			found(Failure, "", "no source of prices is configured: nothing is ever due",
				"name at least two in [[scanner.price.source]] of the region's file")
		}
	}},
	{"price-source", "prices", false, func(f *Facts, found report) {
		how := warnIf(slices.ContainsFunc(f.Sources, func(s Source) bool { return len(s.Reports) > 0 }))
		for _, s := range f.Sources {
			if len(s.Reports) == 0 && s.Error != nil {
				found(how, s.Name, "no report came: "+s.Error.Error(),
					"check address, key and secret; the file of a key must be readable by the container (mode 0644)")
			}
		}
	}},
	{"price-unreadable", "prices", false, func(f *Facts, found report) {
		for _, s := range f.Sources {
			if s.Unreadable != nil {
				found(Warning, s.Name, "it sent what is no report: "+s.Unreadable.Error(),
					"check the feed's id and kind")
			}
		}
	}},
	{"price-token", "prices", false, func(f *Facts, found report) {
		for _, t := range f.tokens() {
			if len(f.Sources) > 0 && f.sourceCount(t.Address) == 0 {
				found(Failure, t.Address.Hex(), "a market needs its price, and no source has a report of it: nothing "+
					"of that market is executed", "add it to the tokens of a source, with its feed")
			}
		}
	}},
	{"price-lone", "prices", false, func(f *Facts, found report) {
		switch {
		case f.Development:
			return
		case len(f.Sources) == 1:
			found(Warning, f.Sources[0].Name, "it is the only source of prices: it is believed whatever it says",
				"add a second one, of another provider")
			return
		}
		for _, t := range f.tokens() {
			if f.sourceCount(t.Address) == 1 {
				found(Warning, t.Address.Hex(), "one source alone has its price: it is believed whatever it says",
					"add the token to a second source")
			}
		}
	}},
	{"price-age", "prices", false, eachReport("see whether the source still serves the feed; set max_age to an "+
		"aggregator's heartbeat", func(f *Facts, s Source, r Report) string {
		bound := cmp.Or(s.MaxAge, f.Settings.Price.MaxAge)
		if age := span(r.TimeMs, f.clock()); age > bound {
			return fmt.Sprintf("its newest report is %s old, and older than %s none is used", age.Round(time.Second),
				bound)
		}
		return ""
	})},
	{"price-ahead", "prices", false, eachReport("the source's clock is wrong, or every endpoint is behind: compare "+
		"with another source", func(f *Facts, _ Source, r Report) string {
		if ahead := span(f.clock(), r.TimeMs); ahead > f.Settings.Price.MaxAhead+time.Second {
			return fmt.Sprintf("its newest report is %s ahead of the chain's clock", ahead.Round(100*time.Millisecond))
		}
		return ""
	})},
	{"price-spread", "prices", false, eachReport("the market is closed, or the feed is another one: check its id and "+
		"decimals", func(f *Facts, _ Source, r Report) string {
		if apart := basisPoints(r.Min, r.Max); apart > f.Settings.Price.MaxSpread {
			return fmt.Sprintf("minimum and maximum are %d basis points apart, and more than %d are refused", apart,
				f.Settings.Price.MaxSpread)
		}
		return ""
	})},
	{"price-deviation", "prices", false, contradictingSources},
	{"price-decimals", "prices", false, func(f *Facts, found report) {
		for _, t := range f.tokens() {
			for _, s := range f.Sources {
				if have, is := s.Decimals[t.Address]; is && t.Decimals >= 0 && int(have) != t.Decimals {
					found(Failure, s.Name+" "+t.Address.Hex(), fmt.Sprintf("%d decimals are configured, and the "+
						"token's contract says %d: every price is wrong by powers of ten", have, t.Decimals),
						"correct `decimals` of the token in the region's file")
				}
			}
		}
	}},
	{"price-provider", "prices", false, refusedProvider},
	{"price-topic", "prices", true, oldOnTopic},
	{"price-fixed", "prices", true, func(f *Facts, found report) {
		if f.Topics == nil {
			return
		}
		for _, why := range f.Topics.Stuck {
			found(Failure, "", why, "tell the exchange: one value for both ends it at once, as does another provider")
		}
	}},
}

// sourceCount counts the sources that had a report of a token.
func (f *Facts) sourceCount(token chain.Address) (count int) {
	for _, s := range f.Sources {
		if _, has := s.Reports[token]; has {
			count++
		}
	}
	return count
}

// tokens are those the exchange's markets need prices of.
func (f *Facts) tokens() []Token {
	if f.Venue == nil {
		return nil
	}
	return f.Venue.Tokens
}

// eachReport judges every newest report, by source and token; nothing seen = nothing is wrong.
func eachReport(fix string, judge func(*Facts, Source, Report) (seen string)) func(*Facts, report) {
	return func(f *Facts, found report) {
		for _, s := range f.Sources {
			for _, token := range s.tokens() {
				if seen := judge(f, s, s.Reports[token]); seen != "" {
					found(Failure, s.Name+" "+token.Hex(), seen, fix)
				}
			}
		}
	}
}

// tokens are those it has a report of, in order.
func (s Source) tokens() []chain.Address {
	return slices.SortedFunc(maps.Keys(s.Reports), func(a, b chain.Address) int { return slices.Compare(a[:], b[:]) })
}

// clock is the chain's time in Unix milliseconds, or this machine's where no endpoint answers.
func (f *Facts) clock() uint64 {
	return cmp.Or(f.best().TimeMs, uint64(f.Machine.Now.UnixMilli()))
}

const basis = 10_000 // basis points in one

// basisPoints is how far two prices are apart, of the lower one. A price of zero is as far as can be.
func basisPoints(a, b chain.Uint) uint64 {
	low, high := a.Min(b), a.Max(b)
	if low.IsZero() {
		return ^uint64(0)
	}
	if points, fits := high.Sub(low).MulDiv(chain.U64(basis), low).Uint64(); fits {
		return points
	}
	return ^uint64(0)
}

// middle of what a report allows, in its units.
func (r Report) middle() chain.Uint { return r.Min.Add(r.Max).Div(chain.U64(2)) }

func contradictingSources(f *Facts, found report) {
	for i, a := range f.Sources {
		for _, b := range f.Sources[i+1:] {
			for _, token := range a.tokens() {
				other, has := b.Reports[token]
				if !has {
					continue
				}
				apart := basisPoints(a.Reports[token].middle(), other.middle())
				if most := f.Settings.Price.MaxDeviation; apart > most {
					found(Failure, token.Hex(), fmt.Sprintf("%s and %s are %d basis points apart, and more than %d "+
						"keep the token waiting", a.Name, b.Name, apart, most),
						"one of the feeds is another token's, or has other decimals: compare both with an exchange")
				}
			}
		}
	}
}

func refusedProvider(f *Facts, found report) {
	if f.Venue == nil {
		return
	}
	refused := map[string]bool{}
	for _, s := range f.Sources {
		if unsigned := s.unsigned(); len(unsigned) > 0 {
			found(warnIf(!slices.ContainsFunc(unsigned, f.nobodySigns)), s.Name,
				"it has reports that nobody signs: no exchange takes them, and nothing is executed at their prices",
				"list it behind a source of the same tokens whose reports the exchange takes")
		}
		for _, r := range s.Reports {
			if r.Provider.IsZero() {
				continue
			}
			if takes, asked := f.Venue.Providers[r.Provider]; asked && !takes {
				refused[s.Name+"\x00"+r.Provider.Hex()] = true
			}
		}
	}
	for _, both := range slices.Sorted(maps.Keys(refused)) {
		name, provider, _ := strings.Cut(both, "\x00")
		found(Failure, name, "the exchange takes no reports from the oracle provider "+provider,
			"set `provider` to the contract that the exchange has enabled for this kind of report")
	}
}

// unsigned are the tokens whose report names no oracle provider: a kind of source that has none knows no such setting.
func (s Source) unsigned() []chain.Address {
	return slices.DeleteFunc(s.tokens(), func(t chain.Address) bool { return !s.Reports[t].Provider.IsZero() })
}

// nobodySigns reports whether no source has a report of a token that names an oracle provider.
func (f *Facts) nobodySigns(token chain.Address) bool {
	return !slices.ContainsFunc(f.Sources, func(s Source) bool { return !s.Reports[token].Provider.IsZero() })
}

func oldOnTopic(f *Facts, found report) {
	if f.Topics == nil || f.Topics.Error != nil {
		return
	}
	if len(f.Topics.Reports) == 0 {
		found(Failure, "", "no report is on the price topic",
			"see why the scanner's feed publishes none: docker compose logs scanner")
		return
	}
	for _, t := range f.tokens() {
		newest, has := f.Topics.Reports[t.Address]
		age, seen := span(newest, f.clock()), "the price topic has no report of it"
		if has && age <= due.PriceMaxAge {
			continue
		}
		if has {
			seen = fmt.Sprintf("its newest report on the price topic is %s old", age.Round(time.Second))
		}
		found(Failure, t.Address.Hex(), seen,
			"see what the scanner refuses: metric price_gate_rejections_total, docker compose logs scanner")
	}
}
