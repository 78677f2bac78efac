package hermes

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price/source"
	"perpkeeper/pkg/price/source/sourcetest"
	"perpkeeper/pkg/secret"
)

const (
	ethFeed  = "0xff61491a931112ddf1bd8147cd1b641375f79f5825126d665480874634fd0ace"
	usdcFeed = "0xeaa020c61cc479712813461ce153894a96a6c00b21ed0cfc2798d1f9a9e9c94a"
)

// update is an answer as Hermes gives it.
func update(price string, conf string, second int) string {
	return fmt.Sprintf(`{"binary":{"encoding":"hex","data":["504e4155%04x"]},"parsed":[{"id":"%s",
		"price":{"price":"%s","conf":"%s","expo":-8,"publish_time":%d},"ema_price":{"price":"184100641000","conf":"178704085","expo":-8,"publish_time":%d},
		"metadata":{"slot":290000000,"proof_available_time":%d,"prev_publish_time":%d}}]}`,
		second%10000, ethFeed[2:], price, conf, second, second, second+1, second-1)
}

func hermesTable() source.Table {
	return source.Table{Kind: "hermes", Provider: sourcetest.Provider,
		Tokens: []source.Token{{Address: sourcetest.Wbnb, Feed: ethFeed, Decimals: 18},
			{Address: sourcetest.Usdc, Feed: usdcFeed, Decimals: 6}}}
}

func TestHermes(t *testing.T) {
	s := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("encoding") != "hex" || q.Get("parsed") != "true" || q.Get("ignore_invalid_price_ids") != "true" ||
			!slices.Equal(q["ids[]"], []string{ethFeed, usdcFeed}) {
			t.Errorf("asked for %v", q)
		}
		if token := r.Header.Get("Authorization"); token != "Bearer hunter2" {
			t.Errorf("asked with %q", token)
		}
		switch r.URL.Path {
		case "/region/7f3a9c/v2/updates/price/latest":
			_, _ = io.WriteString(w, update("184136023127", "177166324", 1692110601))
		case "/region/7f3a9c/v2/updates/price/stream":
			_, _ = io.WriteString(w, ":keepalive\n\n")
			for _, u := range []string{update("184200000000", "1", 1692110602), update("-1", "1", 1692110603)} {
				_, _ = io.WriteString(w, "data:"+strings.ReplaceAll(u, "\n", "\ndata:")+"\n\n")
			}
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	table := hermesTable()
	table.URL, table.Key = sourcetest.At(s), secret.New("hunter2")
	r := sourcetest.Run(t, Plugin, table, nil)
	g := r.Next(t)
	if len(g.Reports) != 1 {
		t.Fatalf("%+v", g)
	}
	eth := g.Reports[0]
	// 1841.36023127 ± 1.77166324 USD per 10^18
	if eth.Min.String() != "1839588568030000" || eth.Max.String() != "1843131894510000" ||
		eth.TimeMs != 1692110601000 || eth.Token != sourcetest.Wbnb ||
		eth.Provider != sourcetest.Provider {
		t.Errorf("%+v", eth)
	}
	proof := "0000000000000000000000000000000000000000000000000000000000000020" + // where the list is
		"0000000000000000000000000000000000000000000000000000000000000001" + // how long it is
		"0000000000000000000000000000000000000000000000000000000000000020" + // where its element is
		"0000000000000000000000000000000000000000000000000000000000000006" + // how long that is
		"504e41550259" + strings.Repeat("00", 26)
	if got := hex.EncodeToString(eth.Data); got != proof {
		t.Errorf("data %s, want %s", got, proof)
	}
	if g := r.Next(t); g.Reports[0].TimeMs != 1692110602000 || g.Reports[0].Min.String() != "1841999999990000" {
		t.Errorf("%+v", g)
	}
	if g := r.Next(t); len(g.Reports) != 0 || len(g.Unreadable) != 1 ||
		!strings.Contains(g.Unreadable[0].Error(), "price:") {
		t.Errorf("a negative price: %+v", g)
	}
}

func TestHermesWithoutStreamIsPolled(t *testing.T) {
	var second atomic.Int64
	s := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/latest") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, update("100", "1", int(1692110600+second.Add(1))))
	})
	table := hermesTable()
	table.URL = sourcetest.At(s)
	r := sourcetest.Run(t, Plugin, table, nil)
	for i := range 3 {
		if g := r.Next(t); g.Reports[0].TimeMs != uint64(1692110601+i)*1000 {
			t.Errorf("%+v", g)
		}
	}
}

func TestHermesRefuses(t *testing.T) {
	feeds := map[chain.Hash][]source.Token{}
	id, err := chain.ParseHash(ethFeed)
	if err != nil {
		t.Fatal(err)
	}
	feeds[id] = []source.Token{{Address: sourcetest.Wbnb, Decimals: 18}}
	parsed := func(fields string) string {
		return `{"binary":{"encoding":"base64","data":["UE5BVQ=="]},"parsed":[{"id":"` + ethFeed + `","price":{` +
			fields + `}}]}`
	}
	for raw, want := range map[string]string{
		parsed(`"price":"5","conf":"6","expo":-8,"publish_time":1692110601`):  "a price of 5 with a confidence of 6",
		parsed(`"price":"5","conf":"-6","expo":-8,"publish_time":1692110601`): "conf",
		parsed(`"price":"5","conf":"1","expo":99,"publish_time":1692110601`):  "of 18 decimals",
		parsed(`"price":"5","conf":"1","expo":-8,"publish_time":-1`):          "publish_time",
		strings.ReplaceAll(parsed(`"price":"5"`), ethFeed, usdcFeed):          "was not asked for",
		strings.ReplaceAll(parsed(`"price":"5"`), ethFeed, "eth"):             "feed \"eth\"",
	} {
		reports, unreadable, err := decode([]byte(raw), sourcetest.Provider, feeds)
		if err != nil || len(reports) != 0 || len(unreadable) != 1 || !strings.Contains(unreadable[0].Error(), want) {
			t.Errorf("%s: %+v, %v, %v; want %s", raw, reports, unreadable, err, want)
		}
	}
	for _, raw := range []string{`{}`, `[]`, `{"binary":{"encoding":"zip","data":["00"]}}`,
		`{"binary":{"encoding":"hex","data":["0"]}}`} {
		if _, _, err := decode([]byte(raw), sourcetest.Provider, feeds); err == nil {
			t.Errorf("%s is read", raw)
		}
	}
	reports, _, err := decode([]byte(parsed(`"price":"5","conf":"1","expo":-8,"publish_time":7`)), sourcetest.Provider,
		feeds)
	if err != nil || reports[0].Min != perp.U64(40000) {
		t.Errorf("%+v, %v", reports, err)
	}
}

// One feed may be the price of several tokens: it is asked for once, and is a report of each of them.
func TestOneFeedOfSeveralTokens(t *testing.T) {
	s := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if ids := r.URL.Query()["ids[]"]; !slices.Equal(ids, []string{ethFeed, usdcFeed}) {
			t.Errorf("asked for %v", ids)
		}
		if strings.HasSuffix(r.URL.Path, "/stream") {
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, update("184136023127", "177166324", 1692110601))
	})
	table, wrapped := hermesTable(), chain.Address{19: 7}
	table.URL = sourcetest.At(s)
	table.Tokens = append(table.Tokens, source.Token{Address: wrapped, Feed: ethFeed, Decimals: 17})
	g := sourcetest.Run(t, Plugin, table, nil).Next(t)
	if len(g.Reports) != 2 || g.Reports[0].Token != sourcetest.Wbnb || g.Reports[1].Token != wrapped {
		t.Fatalf("%+v", g)
	}
	if one, other := g.Reports[0], g.Reports[1]; other.Min != one.Min.Mul(perp.U64(10)) || other.TimeMs != one.TimeMs ||
		len(other.Data) != len(one.Data) || other.Provider != one.Provider {
		t.Errorf("%+v, %+v", one, other)
	}
}

// The list of bytes is what a contract reads: whole words, and what was put in.
func TestBytesList(t *testing.T) {
	list := [][]byte{{1}, {}, make([]byte, 32), make([]byte, 33)}
	out := encodeBytesList(list)
	if len(out)%source.Word != 0 {
		t.Fatalf("%d bytes", len(out))
	}
	at := func(offset int) int {
		n, fits := perp.UintFromBytes(out[offset : offset+source.Word]).Uint64()
		if !fits {
			t.Fatal(errors.New("no length"))
		}
		return int(n)
	}
	if at(0) != source.Word || at(source.Word) != len(list) {
		t.Errorf("head %d, %d", at(0), at(source.Word))
	}
	for i, want := range list {
		begin := 2*source.Word + at((2+i)*source.Word)
		if n := at(begin); n != len(want) || string(out[begin+source.Word:begin+source.Word+n]) != string(want) {
			t.Errorf("element %d: %d bytes", i, n)
		}
	}
}

// Whatever a service answers, reading it neither panics nor makes up a report.
func FuzzDecodeHermes(f *testing.F) {
	f.Add([]byte(update("184136023127", "177166324", 1692110601)))
	f.Add([]byte(`{"binary":{"encoding":"base64","data":["UE5BVQ==",""]},"parsed":[{"id":"00"}]}`))
	f.Add([]byte(`{"parsed":null}`))
	id, err := chain.ParseHash(ethFeed)
	if err != nil {
		f.Fatal(err)
	}
	feeds := map[chain.Hash][]source.Token{id: {{Address: sourcetest.Wbnb, Decimals: 18}}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		reports, unreadable, err := decode(raw, sourcetest.Provider, feeds)
		if err != nil && len(reports)+len(unreadable) > 0 {
			t.Fatalf("%d reports beside an error", len(reports))
		}
		sourcetest.Sane(t, reports)
		for _, r := range reports {
			if len(r.Data) < 2*source.Word || r.Token != sourcetest.Wbnb {
				t.Fatalf("%+v", r)
			}
		}
	})
}
