package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

func priceChecks() []check {
	return []check{
		{"price-sources", "prices", false, noSource},
		{"price-source", "prices", false, silentSource},
		{"price-unreadable", "prices", false, unreadableSource},
		{"price-token", "prices", false, tokenWithoutSource},
		{"price-lone", "prices", false, loneSource},
		{"price-age", "prices", false, oldReports},
		{"price-ahead", "prices", false, reportsAhead},
		{"price-spread", "prices", false, wideReports},
		{"price-deviation", "prices", false, contradictingSources},
		{"price-decimals", "prices", false, wrongDecimals},
		{"price-provider", "prices", false, refusedProvider},
		{"price-topic", "prices", true, oldOnTopic},
	}
}

func noSource(f *Facts) []fault {
	if len(f.Sources) > 0 {
		return nil
	}
	return []fault{{Failure, "", "no source of prices is configured: nothing is ever due",
		"name at least two in [[scanner.price.source]] of the region's file"}}
}

func silentSource(f *Facts) (found []fault) {
	how := Failure
	for _, s := range f.Sources {
		if len(s.Reports) > 0 {
			how = Warning
		}
	}
	for _, s := range f.Sources {
		if len(s.Reports) == 0 && s.Error != nil {
			found = append(found, fault{how, s.Name, "no report came: " + s.Error.Error(),
				"check address, key and secret; the file of a key must be readable by the container (mode 0644)"})
		}
	}
	return found
}

func unreadableSource(f *Facts) (found []fault) {
	for _, s := range f.Sources {
		if s.Unreadable != nil {
			found = append(found, fault{Warning, s.Name, "it sent what is no report: " + s.Unreadable.Error(),
				"check the feed's id and kind"})
		}
	}
	return found
}

// told counts the sources that had a report of a token.
func (f *Facts) told(token chain.Address) (count int) {
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

func tokenWithoutSource(f *Facts) (found []fault) {
	for _, t := range f.tokens() {
		if len(f.Sources) > 0 && f.told(t.Address) == 0 {
			found = append(found, fault{Failure, t.Address.Hex(),
				"a market needs its price, and no source has a report of it: nothing of that market is executed",
				"add it to the tokens of a source, with its feed"})
		}
	}
	return found
}

func loneSource(f *Facts) (found []fault) {
	if f.Development {
		return nil
	}
	if len(f.Sources) == 1 {
		return []fault{{Warning, f.Sources[0].Name, "it is the only source of prices: it is believed whatever it says",
			"add a second one, of another provider"}}
	}
	for _, t := range f.tokens() {
		if f.told(t.Address) == 1 {
			found = append(found, fault{Warning, t.Address.Hex(),
				"one source alone has its price: it is believed whatever it says", "add the token to a second source"})
		}
	}
	return found
}

// each judges every newest report, by source and token.
func (f *Facts) each(judge func(s Source, token chain.Address, r Report) (seen, fix string)) (found []fault) {
	for _, s := range f.Sources {
		for _, token := range slices.SortedFunc(maps.Keys(s.Reports), addresses) {
			if seen, fix := judge(s, token, s.Reports[token]); seen != "" {
				found = append(found, fault{Failure, s.Name + " " + token.Hex(), seen, fix})
			}
		}
	}
	return found
}

func addresses(a, b chain.Address) int { return slices.Compare(a[:], b[:]) }

// clock is the chain's time in Unix milliseconds, or this machine's where no endpoint tells.
func (f *Facts) clock() uint64 {
	return cmp.Or(f.best().TimeMs, uint64(f.Machine.Now.UnixMilli()))
}

func oldReports(f *Facts) []fault {
	return f.each(func(s Source, _ chain.Address, r Report) (string, string) {
		bound := cmp.Or(s.MaxAge, f.Settings.Price.MaxAge)
		if age := span(r.TimeMs, f.clock()); age > bound {
			return fmt.Sprintf("its newest report is %s old, and older than %s none is used",
					age.Round(time.Second), bound),
				"see whether the source still serves the feed; set max_age to an aggregator's heartbeat"
		}
		return "", ""
	})
}

func reportsAhead(f *Facts) []fault {
	return f.each(func(_ Source, _ chain.Address, r Report) (string, string) {
		if ahead := span(f.clock(), r.TimeMs); ahead > f.Settings.Price.MaxAhead+time.Second {
			return fmt.Sprintf("its newest report is %s ahead of the chain's clock", ahead.Round(100*time.Millisecond)),
				"the source's clock is wrong, or every endpoint is behind: compare with another source"
		}
		return "", ""
	})
}

const basis = 10_000 // basis points in one

func wideReports(f *Facts) []fault {
	return f.each(func(_ Source, _ chain.Address, r Report) (string, string) {
		if apart := basisPoints(r.Min, r.Max); apart > f.Settings.Price.MaxSpread {
			return fmt.Sprintf("minimum and maximum are %d basis points apart, and more than %d are refused", apart,
					f.Settings.Price.MaxSpread),
				"the market is closed, or the feed is another one: check its id and decimals"
		}
		return "", ""
	})
}

// basisPoints is how far two prices are apart, of the lower one. A price of zero is as far as can be.
func basisPoints(a, b perp.Uint) uint64 {
	low, high := a.Min(b), a.Max(b)
	if low.IsZero() {
		return ^uint64(0)
	}
	if points, fits := high.Sub(low).MulDiv(perp.U64(basis), low).Uint64(); fits {
		return points
	}
	return ^uint64(0)
}

// middle of what a report allows, in its units.
func (r Report) middle() perp.Uint { return r.Min.Add(r.Max).Div(perp.U64(2)) }

func contradictingSources(f *Facts) (found []fault) {
	for i, a := range f.Sources {
		for _, b := range f.Sources[i+1:] {
			for _, token := range slices.SortedFunc(maps.Keys(a.Reports), addresses) {
				other, has := b.Reports[token]
				if !has {
					continue
				}
				apart := basisPoints(a.Reports[token].middle(), other.middle())
				if apart > f.Settings.Price.MaxDeviation {
					found = append(found, fault{Failure, token.Hex(),
						fmt.Sprintf("%s and %s are %d basis points apart, and "+
							"more than %d keep the token waiting", a.Name, b.Name, apart,
							f.Settings.Price.MaxDeviation),
						"one of the feeds is another token's, or has other decimals: compare both with an exchange"})
				}
			}
		}
	}
	return found
}

func wrongDecimals(f *Facts) (found []fault) {
	for _, t := range f.tokens() {
		for _, s := range f.Sources {
			if have, is := s.Decimals[t.Address]; is && t.Decimals >= 0 && int(have) != t.Decimals {
				found = append(found, fault{Failure, s.Name + " " + t.Address.Hex(), fmt.Sprintf("%d decimals are "+
					"configured, and the token's contract says %d: every price is wrong by powers of ten", have,
					t.Decimals),
					"correct `decimals` of the token in the region's file"})
			}
		}
	}
	return found
}

func refusedProvider(f *Facts) (found []fault) {
	if f.Venue == nil {
		return nil
	}
	refused := map[string]bool{}
	for _, s := range f.Sources {
		for _, r := range s.Reports {
			if takes, asked := f.Venue.Providers[r.Provider]; asked && !takes {
				refused[s.Name+"\x00"+r.Provider.Hex()] = true
			}
		}
	}
	for _, both := range slices.Sorted(maps.Keys(refused)) {
		name, provider, _ := strings.Cut(both, "\x00")
		found = append(found, fault{Failure, name, "the exchange takes no reports from the oracle provider " + provider,
			"set `provider` to the contract that the exchange has enabled for this kind of report"})
	}
	return found
}

func oldOnTopic(f *Facts) (found []fault) {
	if f.Topics == nil || f.Topics.Error != nil {
		return nil
	}
	if len(f.Topics.Reports) == 0 {
		return []fault{{Failure, "", "no report is on the price topic",
			"see why the scanner's feed publishes none: docker compose logs scanner"}}
	}
	for _, t := range f.tokens() {
		newest, has := f.Topics.Reports[t.Address]
		seen := "the price topic has no report of it"
		if age := span(newest, f.clock()); has {
			if age <= f.Settings.Price.BoardMaxAge {
				continue
			}
			seen = fmt.Sprintf("its newest report on the price topic is %s old", age.Round(time.Second))
		}
		found = append(found, fault{Failure, t.Address.Hex(), seen,
			"see what the scanner refuses: metric price_gate_rejections_total, docker compose logs scanner"})
	}
	return found
}
