package streams

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/sourcetest"
	"perpkeeper/pkg/setting/secret"
)

const feedV3 = "0x000359843a543ee2fe414dc14c7e7920ef10f4372990b79d6361cdc0dd1ba782"

// recorded is a report that Data Streams' test network signed on 22 November 2024, for ETH/USD.
func recorded(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/streams_v3.hex")
	if err != nil {
		t.Fatal(err)
	}
	full, err := source.DecodeHex(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return full
}

func TestDecodeRecordedReport(t *testing.T) {
	full := recorded(t)
	r, err := decodeFullReport(full)
	if err != nil {
		t.Fatal(err)
	}
	if r.feed.Hex() != feedV3 || r.validFrom != 1732280128 || r.observed != 1732280128 || r.expires != 1732366528 ||
		r.nativeFee != chain.U64(29822686516800) ||
		r.linkFee != chain.U64(6446908323867700) || r.price.String() != "3353151968509396700000" ||
		r.bid.String() != "3353129257778281000000" ||
		r.ask.String() != "3353262200000000000000" {
		t.Errorf("%+v", r)
	}
	reply := streamsReply{FeedID: r.feed, FullReport: "0x" + hex.EncodeToString(full)}
	got, _, err := reply.report(source.Token{Address: sourcetest.Wbnb, Decimals: 18, FeedDecimals: 18})
	if err != nil || got.Min.String() != "3353129257778281" || got.Max.String() != "3353262200000000" ||
		got.TimeMs != 1732280128000 ||
		!bytes.Equal(got.Data, full) {
		t.Errorf("%+v, %v", got, err)
	}
	reply.FeedID[31]++
	if _, _, err := reply.report(source.Token{}); err == nil ||
		!strings.Contains(err.Error(), "it is one of feed "+feedV3) {
		t.Errorf("a report of another feed: %v", err)
	}
}

func TestDecodeRefusesReports(t *testing.T) {
	for want, spoil := range map[string]func([]byte) []byte{
		"is too short":                    func(b []byte) []byte { return b[:7*word-1] },
		"offset of the report":            func(b []byte) []byte { b[3*word] = 1; return b },
		"length of the report":            func(b []byte) []byte { return b[:8*word+100] },
		"schema 8":                        func(b []byte) []byte { b[8*word+1] = 8; return b },
		"without a feed id":               func(b []byte) []byte { b[8*word-1], b[8*word-2] = 31, 0; return b },
		"has 288 bytes, not 256":          func(b []byte) []byte { b[8*word-1], b[8*word-2] = 0, 1; return b },
		"word 2 of the report is no uint": func(b []byte) []byte { b[8*word+2*word] = 1; return b },
		"word 7 of the report is negativ": func(b []byte) []byte { b[8*word+7*word] = 0xff; return b },
	} {
		if _, err := decodeFullReport(spoil(recorded(t))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The exchange's provider takes bid and ask towards each other; the numbers are those of the contracts' own test.
func TestNarrowedAsTheProviderDoes(t *testing.T) {
	percent := chain.Pow10(28)
	for _, tt := range []struct{ percents, low, high uint64 }{
		{1, 99_999_990, 100_000_010}, {90, 99_999_999, 100_000_001}, {100, 100_000_000, 100_000_000},
		{300, 99_999_990, 100_000_010},
	} {
		got := narrow(perp.Price{Min: chain.U64(99_999_990), Max: chain.U64(100_000_010)},
			percent.Mul(chain.U64(tt.percents)))
		if got.Min != chain.U64(tt.low) || got.Max != chain.U64(tt.high) {
			t.Errorf("by %d %%: %s..%s, want %d..%d", tt.percents, got.Min, got.Max, tt.low, tt.high)
		}
	}
	one := perp.Price{Min: chain.U64(7), Max: chain.U64(7)}
	if got := narrow(one, percent); got != one {
		t.Errorf("one price: %+v", got)
	}
}

// The signatures of the service's own client for the same requests.
func TestSignature(t *testing.T) {
	for _, tt := range []struct {
		method, path, body, key, secret string
		ms                              int64
		want                            string
	}{
		{"GET", "/api/v1/feeds", "", "clientId", "userSecret", 1718885772,
			"e9b2aa1deb13b2abd078353a5e335b2f50307159ad28b433157d2c74dbab2072"},
		{"POST", "/api/v1/feeds", "", "clientId1", "secret1", 12000,
			"31b48ebdb13802b58978cd89eca0c3c68ddccf85392e703b55942544e7203d3d"},
		{"POST", "/api/v1/reports/bulk", `{"attr1": "value1","attr2": [1,2,3]}`, "clientId2", "secret2", 1718885772,
			"37190febe20b6f3662f6abbfa3a7085ad705ac64e88bde8c1a01a635859e6cf7"},
	} {
		c := credentials{secret.New(tt.key), secret.New(tt.secret)}
		if got := c.signature(tt.method, tt.path, []byte(tt.body), tt.ms); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// What is pushed comes through; what was missed while the connection was away comes before what is pushed next
// (PIPE-9).
func TestStreamsReplayWhatWasMissed(t *testing.T) {
	for name, tt := range map[string]struct {
		feeds, missed int
	}{"few feeds": {1, 6}, "many feeds": {8, 3}} {
		t.Run(name, func(t *testing.T) {
			e, s := startEngine(t, tt.feeds)
			for range 20 - tt.missed { // the present second is the last one missed
				e.advance()
			}
			r := sourcetest.Run(t, Plugin, e.table(s), nil)
			got := e.seconds(t, r, 1)
			if want := uint64(20 - tt.missed); got[sourcetest.Wbnb][0] != want {
				t.Errorf("began with %d, want %d", got[sourcetest.Wbnb][0], want)
			}
			e.turn(true)
			e.cut()
			for range tt.missed {
				e.advance()
			}
			<-e.refused
			<-e.refused // the answer before this one has been read
			e.turn(false)
			got = e.seconds(t, r, tt.missed)
			for token, seconds := range got {
				for i, second := range seconds {
					if second != uint64(20-tt.missed+1+i) {
						t.Fatalf("%s missed and got %v", token, seconds)
					}
				}
			}
			if asked := e.questions(); !slices.Contains(asked, "reports/bulk") {
				t.Errorf("asked %v", asked)
			}
			e.advance()
			if got := e.seconds(t, r, 1); got[sourcetest.Wbnb][0] != 21 {
				t.Errorf("pushed %v", got)
			}
			failures := fmt.Sprint(r.Failures())
			if strings.Contains(failures, "7f3a9c") || strings.Contains(failures, "hunter2") ||
				!strings.Contains(failures, "HTTP 503") {
				t.Errorf("the failures: %s", failures)
			}
		})
	}
}

// Without a WebSocket the newest reports are asked for again and again.
func TestStreamsArePolled(t *testing.T) {
	e, s := startEngine(t, 2)
	table := e.table(s)
	table.StreamURL = secret.URL{}
	r := sourcetest.Run(t, Plugin, table, nil)
	for second := range uint64(3) {
		for e.seconds(t, r, 1)[sourcetest.Wbnb][0] != second {
		}
		e.advance()
	}
}

// One feed may be the price of several tokens, as of a coin and of what is wrapped of it: it is asked for once, and is
// a report of each of them.
func TestOneFeedOfSeveralTokens(t *testing.T) {
	e, s := startEngine(t, 1)
	table, wrapped := e.table(s), chain.Address{19: 7}
	table.Tokens = append(table.Tokens, source.Token{Address: wrapped, Feed: e.feeds[0].Hex(), Decimals: 6})
	r := sourcetest.Run(t, Plugin, table, nil)
	for second := range uint64(2) {
		g := r.Next(t)
		if len(g.Reports) != 2 || len(g.Unreadable) != 0 {
			t.Fatalf("second %d: %+v", second, g)
		}
		coin, other := g.Reports[0], g.Reports[1]
		if e.check(t, coin); coin.Token != sourcetest.Wbnb || coin.Second()-e.first != second {
			t.Errorf("second %d: %+v", second, coin)
		}
		if other.Token != wrapped || other.TimeMs != coin.TimeMs || other.Min != coin.Min.Mul(chain.Pow10(12)) ||
			other.Provider != coin.Provider {
			t.Errorf("second %d: %+v", second, other)
		}
		e.advance()
	}
}

// A feed that is not served any more silences its own token and no other, whether reports are pushed or asked for.
func TestOneFeedSilencesNoOther(t *testing.T) {
	for name, pushed := range map[string]bool{"pushed": true, "polled": false} {
		t.Run(name, func(t *testing.T) {
			e, s := startEngine(t, 2)
			e.retired = e.feeds[1]
			table := e.table(s)
			if !pushed {
				table.StreamURL = secret.URL{}
			}
			r := sourcetest.Run(t, Plugin, table, nil)
			for second := range uint64(2) {
				g := r.Next(t)
				for len(g.Reports) == 0 || g.Reports[0].Second()-e.first < second {
					g = r.Next(t)
				}
				if g.Reports[0].Token != sourcetest.Wbnb {
					t.Errorf("%+v", g)
				}
				if second == 0 && (len(g.Unreadable) != 1 || strings.Contains(g.Unreadable[0].Error(), "7f3a9c") ||
					!strings.Contains(g.Unreadable[0].Error(), e.retired.Hex()+": ")) {
					t.Errorf("what is wrong is not said: %v", g.Unreadable)
				}
				e.advance()
			}
			if err := r.Failures(); err != nil {
				t.Error(err)
			}
			e.cut() // it alone is what has to be asked for anew then
			e.advance()
			for g := r.Next(t); len(g.Reports) == 0 || g.Reports[0].Second()-e.first < 3; g = r.Next(t) {
			}
		})
	}
}

// The service refuses whoever signs with another secret, and says so without showing it.
func TestStreamsNeedCredentials(t *testing.T) {
	e, s := startEngine(t, 1)
	table := e.table(s)
	table.Secret = secret.New("hunter3")
	err := sourcetest.Source(t, Plugin, table, nil).Run(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "HTTP 401") || strings.Contains(err.Error(), "hunter3") ||
		strings.Contains(err.Error(), "7f3a9c") {
		t.Errorf("%v", err)
	}
}

// Whatever a service signs, reading it neither panics nor makes up a price.
func FuzzDecodeFullReport(f *testing.F) {
	f.Add(recorded(f))
	f.Add(make([]byte, 7*word))
	f.Add(recorded(f)[:8*word])
	f.Fuzz(func(t *testing.T, full []byte) {
		r, err := decodeFullReport(full)
		if err != nil && r != (reportV3{}) {
			t.Fatalf("%+v beside an error", r)
		}
		if err == nil && (feedVersion(r.feed) != 3 || chain.Pow10(77).Less(r.bid)) {
			t.Fatalf("%+v", r)
		}
	})
}

// The same for what is around it.
func FuzzDecodeStreamsReply(f *testing.F) {
	id, _ := chain.ParseHash(feedV3)
	f.Add([]byte(fmt.Sprintf(`{"report":{"feedID":%q,"fullReport":%q}}`, feedV3, signed(f, id, 5, 6))))
	f.Add([]byte(`{"reports":[{"feedID":"0x00"},null]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		one, err := decodeStreamsReport(raw)
		if err == nil {
			r, _, err := one.report(source.Token{Address: sourcetest.Wbnb, Decimals: 18, FeedDecimals: 18})
			if err == nil {
				sourcetest.Sane(t, []price.Report{r})
			}
		}
		if some, err := decodeStreamsReports(raw); err != nil && some != nil {
			t.Fatalf("%d reports beside an error", len(some))
		}
	})
}
