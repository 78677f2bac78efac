package contracts

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// maxInitCode is twice the largest code a chain accepts (EIP-170): what an artifact may hold at most.
const maxInitCode = 2 * 24_576

func TestEveryArtifactParses(t *testing.T) {
	shared, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(shared)
	libraries := map[Name]common.Address{}
	for name, c := range all {
		name := Name(strings.TrimSuffix(string(name), "."+string(V22B)))
		if source := filepath.Join("src", string(name)+".sol"); !exists(source) {
			t.Errorf("artifact %s has no source %s", name, source)
		}
		for _, library := range c.Libraries {
			libraries[library] = common.HexToAddress("0x70107e4fD08c1E8bBD47930E01afdF0C100fC211")
		}
	}
	for _, name := range []Name{
		AdlHandler, CallbackCounter, Config, DataStore, DepositHandler, DevnetOracleProvider, Errors, EventEmitter,
		ExchangeRouter, GasBurner,
		GlvDepositHandler, GlvFactory, GlvShiftHandler, GlvToken, GlvWithdrawalHandler, LiquidationHandler,
		MarketFactory, MarketToken, MintableToken,
		Oracle, OrderBook, OrderHandler, PoolBook, PositionBook, Reader, RequestVault, RoleStore, Router,
		ShiftHandler, StaticOracleProvider, SwapHandler, WithdrawalHandler,
	} {
		if _, ok := all[name]; !ok {
			t.Errorf("no artifact of %s", name)
		}
		delete(all, name)
		delete(all, name.of(V22B))
	}
	for name := range all {
		name := Name(strings.TrimSuffix(string(name), "."+string(V22B)))
		if _, linked := libraries[name]; !linked {
			t.Errorf("artifact %s has no name in this package", name)
		}
	}
	for name, c := range shared {
		if _, err := c.ABI.Pack(""); err != nil { // it wants arguments
			c = &Contract{bytecode: c.bytecode, placeholders: c.placeholders}
		}
		if code, err := c.CreationCode(libraries); err != nil || len(code) == 0 || len(code) > maxInitCode {
			t.Errorf("%s has %d bytes of creation code (%v)", name, len(code), err)
		}
		if _, err := c.CreationCode(nil); (err != nil) != (len(c.Libraries)+len(c.placeholders) > 0) {
			t.Errorf("%s without its libraries: %v", name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	market := common.HexToAddress("0x70107e4fD08c1E8bBD47930E01afdF0C100fC211")
	base := BaseKey("RESERVE_FACTOR")
	for name, c := range map[string]struct{ got, want common.Hash }{
		"role, as documented by GMX": {RoleKey("ORDER_KEEPER"),
			common.HexToHash("0x40a07f8f0fc57fcf18b093d96362a8e661eaac7b7e6edbf66f242111f83a6794")},
		"no arguments": {Key("RESERVE_FACTOR"), base},
		"arguments follow the base key": {
			Key("RESERVE_FACTOR", market, true),
			hash(base.Bytes(), common.LeftPadBytes(market.Bytes(), 32), common.LeftPadBytes([]byte{1}, 32)),
		},
		"position": {
			PositionKey(market, market, market, false),
			hash(common.LeftPadBytes(market.Bytes(), 32), common.LeftPadBytes(market.Bytes(), 32),
				common.LeftPadBytes(market.Bytes(), 32), make([]byte, 32)),
		},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", name, c.got, c.want)
		}
	}
}

func TestRevertReason(t *testing.T) {
	for _, c := range []struct {
		data string
		want string
	}{
		{"0x16307797", "EmptyOrder"},
		{"0xe5feddc00000000000000000000000000000000000000000000000000000000000000001", "InvalidKeeperForFrozenOrder"},
		{"0xe5feddc0", ""},
		{"0xdeadbeef", ""},
		{"0x", ""},
	} {
		if name, _, ok := RevertReason(hexutil.MustDecode(c.data)); name != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, want %q", c.data, name, c.want)
		}
	}
}

func hash(parts ...[]byte) common.Hash {
	return crypto.Keccak256Hash(parts...)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
