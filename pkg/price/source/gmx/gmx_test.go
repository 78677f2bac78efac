package gmx

import (
	_ "embed"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/sourcetest"
)

// signedAnswer is an answer as the public API gives it, blobs shortened; the last three of its prices must not be used.
//
//go:embed testdata/signed_prices.json
var signedAnswer string

func TestSignedPrices(t *testing.T) {
	var asked atomic.Int32
	s := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/region/7f3a9c/signed_prices/latest" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		if asked.Add(1); r.Header.Get("If-None-Match") == `W/"a"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `W/"a"`)
		_, _ = io.WriteString(w, signedAnswer)
	})
	r := sourcetest.Run(t, Plugin, source.Table{Kind: "gmx", URL: sourcetest.At(s), Provider: sourcetest.Provider}, nil)
	g := r.Next(t)
	if len(g.Reports) != 2 || len(g.Unreadable) != 3 {
		t.Fatalf("%+v", g)
	}
	eth := g.Reports[0]
	if eth.TimeMs != 1703844907000 || eth.Min != chain.U64(2365810898560000) ||
		eth.Max != chain.U64(2366066074010000) ||
		eth.Provider != sourcetest.Provider ||
		eth.Data[1] != 6 {
		t.Errorf("%+v", eth)
	}
	for i, want := range []string{`(OLD): the service marks it invalid: "market closed"`, "(NUL): maxPriceFull",
		"(RAW): blob: empty"} {
		if !strings.Contains(g.Unreadable[i].Error(), want) {
			t.Errorf("%v, want %s", g.Unreadable[i], want)
		}
	}
	for asked.Load() < 5 {
		select {
		case g := <-r.Given:
			t.Fatalf("what has not changed is given again: %+v", g)
		default:
		}
	}
	if _, _, err := decodeSignedPrices([]byte(`{"error":"no"}`), sourcetest.Provider, nil); err == nil {
		t.Error("an answer without prices is read")
	}
}

// Whatever a service answers, reading it neither panics nor makes up a report.
func FuzzDecodeSignedPrices(f *testing.F) {
	f.Add([]byte(signedAnswer))
	f.Add(
		[]byte(
			`{"signedPrices":[{"maxBlockTimestamp":18446744073709551615,"maxPriceFull":"1","minPriceFull":"1","blob":"00"}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		reports, unreadable, err := decodeSignedPrices(raw, sourcetest.Provider, nil)
		if err != nil && len(reports)+len(unreadable) > 0 {
			t.Fatalf("%d reports beside an error", len(reports))
		}
		sourcetest.Sane(t, reports)
		for _, r := range reports {
			if len(r.Data) == 0 || r.TimeMs%1000 != 0 {
				t.Fatalf("%+v", r)
			}
		}
	})
}
