package perp

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
)

// recorder is rows that note which parameters they are asked for.
type recorder struct {
	Rows
	asked map[chain.Hash]bool
}

func (r recorder) Get(k RowKey) Row {
	if k.Table == Parameters {
		r.asked[k.Key] = true
	}
	return r.Rows.Get(k)
}

// verdictPaths change a market's parameters so that its terms take each of their ways.
var verdictPaths = []func(rowMap){
	func(rowMap) {},
	func(m rowMap) { m.put(HandlerVersion(chain.Address{}, V22c)) },
	func(m rowMap) {
		m.put(parameter(DataStoreKey("USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE"), chain.U64(1)))
	},
	func(m rowMap) {
		m.put(parameter(DataStoreKey("OPTIMAL_USAGE_FACTOR", market.Hash(), BoolWord(true)), chain.Uint{}))
	},
	func(m rowMap) {
		m.put(parameter(DataStoreKey("FUNDING_INCREASE_FACTOR_PER_SECOND", market.Hash()), chain.Uint{}))
	},
}

// Every parameter that judging a position, accruing and deleveraging ask for is in the catalogue, under the very key:
// the audit cannot miss one.
func TestRulesReadWhatTheCatalogueLists(t *testing.T) {
	c, p := openMarket()
	asked := map[chain.Hash]bool{}
	for _, change := range verdictPaths {
		rows, is := c.Rows.(rowMap)
		if !is {
			t.Fatal("the fixture's rows are of another kind")
		}
		change(rows)
		seen := c
		seen.Rows = recorder{rows, asked}
		view := NewView(seen)
		if _, err := view.Judge(p); err != nil {
			t.Fatal(err)
		}
		for _, isLong := range []bool{false, true} {
			if _, err := mustTerms(t, seen).Deleveraging(seen.Rows, isLong); err != nil {
				t.Fatal(err)
			}
		}
	}
	m, _ := c.Rows.Get(RowKey{Markets, market.Hash()}).(Market)
	listed := map[chain.Hash]bool{
		// of the position's account: not to be listed, see Unaudited
		DataStoreKey("PRO_TRADER_TIER", p.Account.Hash()):              true,
		DataStoreKey("SAVED_FUNDING_FACTOR_PER_SECOND", market.Hash()): true,
		DataStoreKey("HANDLER_VERSION"):                                true, // of code
	}
	for _, w := range Words([]Market{m}) {
		if listed[w.Key] {
			t.Errorf("%s is listed twice", w.Name)
		}
		listed[w.Key] = true
	}
	for key := range asked {
		if !listed[key] {
			t.Errorf("a rule reads the parameter %s, and Words does not list it", key)
		}
	}
	if len(asked) < 30 {
		t.Errorf("only %d parameters were asked for: the test sees too little", len(asked))
	}
}

// noParameters are names that stand in the code and are no setting that a rule reads.
var noParameters = []string{
	// measures that events carry
	"VIRTUAL_INVENTORY_FOR_SWAPS", "VIRTUAL_INVENTORY_FOR_POSITIONS", "VIRTUAL_INVENTORY_FOR_POSITIONS_IN_TOKENS",
	// what orders, markets and fees are
	"ACCOUNT", "MARKET_LIST", "INDEX_TOKEN", "LONG_TOKEN", "SHORT_TOKEN", "ATOMIC_SWAP_FEE_TYPE",
	// what keeperctl asks the chain itself
	"IS_ORACLE_PROVIDER_ENABLED", "DATA_STREAM_ID",
	// what the scanner reads when a token's price is fixed
	"STATIC_ORACLE_PRICE", "ORACLE_PROVIDER_FOR_TOKEN",
}

// A name that any code of the keeper makes a key of is in the catalogue, or named above: who adds a read adds it there.
func TestEveryNameIsInTheCatalogue(t *testing.T) {
	known := slices.Clone(noParameters)
	for _, n := range Catalogue() {
		known = append(known, n.Name, n.Prefix)
	}
	found := 0
	for _, root := range []string{"../../pkg", "../../services"} {
		err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.HasPrefix(path, "devnet/") {
				return err
			}
			for _, name := range keyNames(t, filepath.Join(root, path)) {
				found++
				if !slices.Contains(known, name) {
					t.Errorf("%s makes a key of %q, which is not in the catalogue (pkg/perp/word.go)", path, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 30 {
		t.Errorf("only %d names were found: the test sees too little", found)
	}
}

// keyNames lists the literal names of which a file makes keys.
func keyNames(t *testing.T, file string) (names []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is || len(call.Args) == 0 {
			return true
		}
		called := ""
		switch f := call.Fun.(type) {
		case *ast.Ident:
			called = f.Name
		case *ast.SelectorExpr:
			called = f.Sel.Name
		}
		literal, isLiteral := call.Args[0].(*ast.BasicLit)
		if isLiteral && (called == "BaseKey" || called == "DataStoreKey") {
			if name, err := strconv.Unquote(literal.Value); err == nil {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}

func TestWordsOfAVenue(t *testing.T) {
	eth, btc := chain.Address{1}, chain.Address{2}
	one := Market{MarketToken: chain.Address{11}, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	two := Market{MarketToken: chain.Address{12}, IndexToken: btc, LongToken: eth, ShortToken: usdc}
	single := Market{MarketToken: chain.Address{13}, IndexToken: btc, LongToken: eth, ShortToken: eth}
	all := Words([]Market{one, two, single})
	seen := map[chain.Hash]Word{}
	for _, w := range all {
		if before, again := seen[w.Key]; again {
			t.Errorf("%s and %s have one key", before.Name, w.Name)
		}
		seen[w.Key] = w
	}
	for _, want := range []struct {
		key  chain.Hash
		name string
		kind WordKind
		of   []bool // whether it concerns the three markets
	}{
		{DataStoreKey("MIN_COLLATERAL_USD"), "MIN_COLLATERAL_USD", UintWord, []bool{true, true, true}},
		{DataStoreKey("VIRTUAL_TOKEN_ID", btc.Hash()), "VIRTUAL_TOKEN_ID(" + btc.Hex() + ")", Bytes32Word,
			[]bool{false, true, true}},
		{DataStoreKey("VIRTUAL_TOKEN_ID", usdc.Hash()), "VIRTUAL_TOKEN_ID(" + usdc.Hex() + ")", Bytes32Word,
			[]bool{true, true, false}},
		{DataStoreKey("VIRTUAL_MARKET_ID", two.MarketToken.Hash()), "VIRTUAL_MARKET_ID(" + two.MarketToken.Hex() + ")",
			Bytes32Word, []bool{false, true, false}},
		{
			DataStoreKey("POSITION_FEE_FACTOR", one.MarketToken.Hash(), BoolWord(true)),
			"POSITION_FEE_FACTOR(" + one.MarketToken.Hex() + ", true)", UintWord,
			[]bool{true, false, false},
		},
		{
			DataStoreKey("MAX_PNL_FACTOR", BaseKey("MAX_PNL_FACTOR_FOR_TRADERS"), one.MarketToken.Hash(),
				BoolWord(false)),
			"MAX_PNL_FACTOR(MAX_PNL_FACTOR_FOR_TRADERS, " + one.MarketToken.Hex() + ", false)", UintWord,
			[]bool{true, false, false},
		},
		{DataStoreKey("MAX_POOL_AMOUNT", one.MarketToken.Hash(), usdc.Hash()),
			"MAX_POOL_AMOUNT(" + one.MarketToken.Hex() + ", " + usdc.Hex() + ")",
			UintWord, []bool{true, false, false}},
	} {
		w, listed := seen[want.key]
		if !listed || w.Name != want.name || w.Kind != want.kind {
			t.Errorf("%s: %+v, listed %t", want.name, w, listed)
		}
		for i, m := range []Market{one, two, single} {
			if w.Concerns(m) != want.of[i] {
				t.Errorf("%s concerns market %d: %t", w.Name, i, !want.of[i])
			}
		}
	}
}

// What an audit reads changes the fold where it differs, and leaves what is right alone; later events win.
func TestAuditedParameters(t *testing.T) {
	key, at := chain.Hash{7}, func(block uint64) Stamp { return Stamp{Block: block} }
	for name, tt := range map[string]struct {
		before Row // nil for none
		read   Parameter
		want   Row
	}{
		"absent is zero": {nil, Parameter{key, chain.Hash{}, FromCall, at(5)}, nil},
		"no event ever said it": {nil, Parameter{key, chain.Hash{1}, FromCall, at(5)},
			Parameter{key, chain.Hash{1}, FromCall, at(5)}},
		"as the event said": {Parameter{key, chain.Hash{1}, FromEvent, at(3)},
			Parameter{key, chain.Hash{1}, FromCall, at(5)}, Parameter{key, chain.Hash{1}, FromEvent, at(3)}},
		"changed without an event": {Parameter{key, chain.Hash{1}, FromEvent, at(3)},
			Parameter{key, chain.Hash{2}, FromCall, at(5)}, Parameter{key, chain.Hash{2}, FromCall, at(5)}},
		"set to zero without one": {Parameter{key, chain.Hash{1}, FromEvent, at(3)},
			Parameter{key, chain.Hash{}, FromCall, at(5)}, Parameter{key, chain.Hash{}, FromCall, at(5)}},
		"an event since": {Parameter{key, chain.Hash{3}, FromEvent, at(6)},
			Parameter{key, chain.Hash{2}, FromCall, at(5)}, Parameter{key, chain.Hash{3}, FromEvent, at(6)}},
		"an event in the same block": {Parameter{key, chain.Hash{3}, FromEvent, at(5)},
			Parameter{key, chain.Hash{2}, FromCall, at(5)}, Parameter{key, chain.Hash{3}, FromEvent, at(5)}},
		"another call since": {Parameter{key, chain.Hash{3}, FromCall, at(6)},
			Parameter{key, chain.Hash{2}, FromCall, at(5)}, Parameter{key, chain.Hash{3}, FromCall, at(6)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewBook()
			if tt.before != nil {
				s.Put(tt.before)
			}
			if err := Apply(s, ParameterAudited{Parameter: tt.read}); err != nil {
				t.Fatal(err)
			}
			if got := s.Get(RowKey{Parameters, key}); got != tt.want {
				t.Errorf("the row is %+v, want %+v", got, tt.want)
			}
		})
	}
}
