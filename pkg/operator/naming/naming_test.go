package naming_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/naming/namingtest"
	"perpkeeper/pkg/operator/text"
)

var (
	stranger = chain.Address{0x99, 19: 9}
	tx       = chain.Hash{0xaa, 31: 0xbb}
)

// What is known has its name, its decimals and its thousands apart; what is not has its address, shortened.
func TestNames(t *testing.T) {
	known, unknown := naming.New(namingtest.Node{}, namingtest.State{}), naming.New(nil, namingtest.State{})
	var nobody *naming.Names
	known.Read(t.Context())
	unknown.Read(t.Context())
	weth, usdc, market := namingtest.WETH, namingtest.USDC, namingtest.Market.MarketToken
	for want, got := range map[string]string{
		"WETH":                               known.Token(weth),
		"USDC":                               known.Token(usdc), // by a word, as old tokens have it
		"ETH/USD [WETH-USDC]":                known.Market(market),
		"$2,991.91":                          known.Price(weth, chain.U64(2_991_911_299_127_104)),
		"$1":                                 known.Price(usdc, chain.Pow10(24)),
		"1,234.5 USDC":                       known.Amount(usdc, chain.U64(1_234_500_000)),
		text.Short(stranger):                 known.Token(stranger),
		text.Short(market):                   unknown.Market(market),
		"$0.000000000000002 a smallest unit": unknown.Price(weth, chain.U64(2_000_000_000_000_000)),
		"1,000 smallest units of " + text.Short(weth):         unknown.Amount(weth, chain.U64(1000)),
		"$0.000000000000003 a smallest unit":                  nobody.Price(weth, chain.U64(3e15)),
		"in ETH/USD [WETH-USDC] (" + market.Hex() + "), long": known.In("in " + market.Hex() + ", long"),
		"WETH (" + weth.Hex() + ")@18, tx " + tx.Hex():        known.In(weth.Hex() + "@18, tx " + tx.Hex()),
		"of " + stranger.Hex():                                known.In("of " + stranger.Hex()),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if index := known.Index(market); index != weth {
		t.Errorf("the market is of %s", index)
	}
}

// A text loses nothing but digits, and those stand beside it; what an explorer shows leads there.
func TestPieces(t *testing.T) {
	names := naming.New(namingtest.Node{}, namingtest.State{})
	names.Read(t.Context())
	said := "tx " + tx.Hex() + " of " + stranger.Hex() + " (" + namingtest.WETH.Hex() + ") order:" + tx.Hex() + ":1"
	var shown, whole strings.Builder
	var pages []string
	for _, p := range names.Pieces(97, said) {
		shown.WriteString(p.Text)
		if p.Full == "" {
			p.Full = p.Text
		}
		whole.WriteString(p.Full)
		if p.Page != "" {
			pages = append(pages, p.Page)
		}
	}
	if short := text.Short(tx); shown.String() != "tx "+short+" of "+text.Short(stranger)+" (WETH) order:"+short+":1" {
		t.Error(shown.String())
	}
	if whole.String() != said {
		t.Error(whole.String())
	}
	site := "https://testnet.bscscan.com/"
	if got := strings.Join(pages, " "); got != site+"tx/"+tx.Hex()+" "+site+"address/"+stranger.Hex()+" "+
		site+"address/"+namingtest.WETH.Hex() {
		t.Error(got)
	}
	for _, p := range names.Pieces(1337, said) {
		if p.Page != "" {
			t.Errorf("chain 1337 has no explorer, and %s leads to %s", p.Text, p.Page)
		}
	}
}

// slow is a node that takes its time, and is away until then.
type slow struct {
	namingtest.Node
	until time.Time
	asked *int
}

func (s slow) Head(ctx context.Context) (chain.BlockRef, error) {
	*s.asked++
	time.Sleep(time.Second)
	return namingtest.Node{Away: time.Now().Before(s.until)}.Head(ctx)
}

// Nobody waits for names, and what could not be read is read a minute later.
func TestLearnNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		names := naming.New(slow{until: began.Add(time.Minute), asked: &asked}, namingtest.State{})
		look := func(wantAsked int, want string) {
			t.Helper()
			before := time.Now()
			names.Learn(t.Context())
			names.Learn(t.Context())
			if waited := time.Since(before); waited > 0 {
				t.Errorf("waited for %s", waited)
			}
			time.Sleep(20 * time.Second)
			synctest.Wait()
			if got := names.Token(namingtest.WETH); asked != wantAsked || got != want {
				t.Errorf("asked %d times for %s, want %d and %s", asked, got, wantAsked, want)
			}
		}
		look(1, text.Short(namingtest.WETH))
		look(1, text.Short(namingtest.WETH))
		time.Sleep(time.Minute)
		look(2, "WETH")
	})
}
