package web_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"perpkeeper/pkg/operator/naming/namingtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/services/console/web"
)

var (
	tags = regexp.MustCompile(`<[^>]*>`)
	raw  = regexp.MustCompile(`0x[0-9a-fA-F]{40}`)
)

// readable is what of a page a person reads, or is copied by a button.
func readable(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(page, " "))), " ")
}

// Pages name what people know by a name. No hash and no address stands whole in what is read: it can be copied, and
// where the chain has an explorer that is a step away.
func TestPagesHoldNames(t *testing.T) {
	s := attended(t)
	s.exposeNow(3)
	s.letter(2)
	anna := s.as("anna")
	anna.do("signer-pause", signer.Hex(), "by "+signer.Hex())
	anna.awaitPage("/positions", "3 open positions")
	anna.awaitPage("/positions", "ETH/USD [WETH-USDC]")
	job, position := someJob(1).ID, somePosition(1).PositionKey.Hex()
	for path, want := range map[string][]string{
		"/positions":           {"ETH/USD [WETH-USDC]", "$10,000.00", "$1,000"},
		"/market":              {"WETH", "USDC", "$1,000", "$1 "},
		"/job?id=" + job:       {"due", "Every step"},
		"/job?id=" + position:  {"in market ETH/USD [WETH-USDC]"},
		"/jobs":                {"0xA14c09…5B30"},
		"/signers":             {"0xA14c09…5B30", "paused"},
		"/audit":               {"by 0xA14c09…5B30"},
		"/deadletters":         {"order: 0x"},
		"/pnl?by=signer":       nil,
		"/delayed":             nil,
		"/jobs?show=waiting":   nil,
		"/positions?sort=size": nil,
	} {
		_, page := anna.get(path)
		text := readable(page)
		for _, w := range want {
			if !strings.Contains(text+" ", w) {
				t.Errorf("%s has no %q:\n%s", path, w, text)
			}
		}
		if found := raw.FindString(text); found != "" {
			t.Errorf("%s shows %s:\n%s", path, found, text)
		}
	}
	_, page := anna.get("/market")
	if copied := `data-copy="` + namingtest.WETH.Hex() + `"`; !strings.Contains(page, copied) {
		t.Errorf("no %s in\n%s", copied, page)
	}
}

// On BNB chain an address leads to where people see it; on a chain that no site is known to show it leads nowhere.
func TestAddressesLeadToTheExplorer(t *testing.T) {
	for chainID, want := range map[uint64]bool{97: true, 1337: false} {
		s := newSite(t, func(d *web.Deps) { d.Keeper.ChainID = chainID })
		s.must(txstore.NewLeases(s.db).Register(t.Context(), signer, chainID))
		_, page := s.as("vera").get("/signers")
		if got := strings.Contains(page, `href="https://testnet.bscscan.com/address/`+signer.Hex()+`"`); got != want {
			t.Errorf("chain %d, a link: %t\n%s", chainID, got, page)
		}
	}
}
