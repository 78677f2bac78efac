package signer

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
)

// The first account of the well-known test mnemonic.
const (
	devKey     = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
	devAddress = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
)

func dev(t *testing.T, keys ...string) []Signer {
	t.Helper()
	cfg := Config{Dev: true}
	for _, k := range keys {
		cfg.DevKeys = append(cfg.DevKeys, secret.New(k))
	}
	all, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSignIsForOneChainAndRepeatable(t *testing.T) {
	s := dev(t, devKey)[0]
	if s.Address().Hex() != devAddress {
		t.Fatalf("address %s", s.Address())
	}
	tx := Tx{ChainID: 56, Nonce: 7, To: chain.Address{9}, Data: []byte{1, 2, 3}, Gas: 21_000, Tip: 50_000_000,
		Cap: 50_000_000}
	raw, hash, err := s.Sign(t.Context(), tx)
	if err != nil {
		t.Fatal(err)
	}
	var read types.Transaction
	if err := read.UnmarshalBinary(raw); err != nil {
		t.Fatal(err)
	}
	from, err := types.Sender(types.LatestSignerForChainID(read.ChainId()), &read)
	if err != nil || chain.Address(from) != s.Address() {
		t.Errorf("sent by %s: %v", from, err)
	}
	if chain.Hash(read.Hash()) != hash || read.ChainId().Uint64() != 56 || read.Nonce() != 7 ||
		*read.To() != common.Address(tx.To) ||
		!bytes.Equal(read.Data(), tx.Data) || read.Gas() != tx.Gas || read.GasTipCap().Uint64() != tx.Tip ||
		read.GasFeeCap().Uint64() != tx.Cap ||
		read.Value().Sign() != 0 {
		t.Errorf("signed %+v as %s", tx, hex.EncodeToString(raw))
	}
	again, _, err := s.Sign(t.Context(), tx)
	if err != nil || !bytes.Equal(raw, again) {
		t.Error("the same transaction must yield the same bytes")
	}
	tx.ChainID = 97
	if other, _, _ := s.Sign(t.Context(), tx); bytes.Equal(raw, other) {
		t.Error("bytes for another chain must differ")
	}
}

// sealed returns the text of a keystore file.
func sealed(t *testing.T, password string) string {
	t.Helper()
	key, err := crypto.HexToECDSA(devKey)
	if err != nil {
		t.Fatal(err)
	}
	text, err := keystore.EncryptKey(&keystore.Key{Id: uuid.New(), Address: crypto.PubkeyToAddress(key.PublicKey),
		PrivateKey: key}, password, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// folder writes files.
func folder(t *testing.T, files map[string]string) Config {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Config{KeystoreDir: dir}
}

// opened is a folder in which a file can be read by everybody.
func opened(t *testing.T, name string) Config {
	t.Helper()
	cfg := folder(t, map[string]string{"a.json": sealed(t, "hunter2"), "a.password": "hunter2"})
	if err := os.Chmod(filepath.Join(cfg.KeystoreDir, name), 0o604); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestKeystoreOpensWithItsPassword(t *testing.T) {
	all, err := Open(folder(t, map[string]string{"a.json": sealed(t, "pass word"), "a.password": "pass word\n",
		"README": "not a key"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Address().Hex() != devAddress {
		t.Errorf("opened %v", all)
	}
}

func TestOpenSaysWhatIsWrongAndNothingSecret(t *testing.T) {
	twice := folder(t, map[string]string{"a.json": sealed(t, "x"), "a.password": "x", "b.json": sealed(t, "x"),
		"b.password": "x"})
	both := folder(t, nil)
	both.Dev, both.DevKeys = true, []secret.String{secret.New("0x" + devKey)}
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"no key": {Config{}, "keystore_dir: no key"},
		"raw key without dev": {Config{DevKeys: []secret.String{secret.New(devKey)}},
			"dev_keys: raw keys are for development only"},
		"no such folder":   {Config{KeystoreDir: "/nowhere"}, "no such file"},
		"empty folder":     {folder(t, nil), "no key in"},
		"no password file": {folder(t, map[string]string{"a.json": sealed(t, "right")}), "reading the password"},
		"wrong password": {folder(t, map[string]string{"a.json": sealed(t, "right"), "a.password": "hunter2-wrong"}),
			"does not open with the password"},
		"no keystore": {folder(t, map[string]string{"a.json": devKey, "a.password": "x"}), "is no keystore file"},
		"no key text": {Config{Dev: true, DevKeys: []secret.String{secret.New(devKey[:60] + "zzzz")}},
			"signer.dev_keys: number 1 is no private key"},
		"twice": {twice, "configured twice"},
		"two places": {both,
			"keystore_dir: keys come from one place, and several are named: dev_keys, keystore_dir"},
		"key for everybody": {opened(t, "a.json"), "a.json is open to every user of this machine, mode 0604 (chmod " +
			"o-rwx"},
		"password for all": {opened(t, "a.password"), "a.password is open to every user of this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(c.cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			for _, hidden := range []string{devKey[:16], "hunter2"} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("%q shows %q", err, hidden)
				}
			}
		})
	}
}

// Keys never in logs or errors.
func TestNoPrintingReachesTheKey(t *testing.T) {
	s := dev(t, devKey)[0]
	key := crypto.FromECDSA(s.(*local).key)
	var out bytes.Buffer
	holder := struct {
		S      Signer
		hidden Signer
	}{s, s}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		fmt.Fprintf(&out, verb+verb+verb, s, holder, &holder)
	}
	log := zerolog.New(&out)
	log.Info().Interface("signer", s).Interface("holder", holder).Any("list", []Signer{s}).Msg("x")
	if err := json.NewEncoder(&out).Encode(holder); err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{devKey, strings.ToUpper(devKey), new(big.Int).SetBytes(key).String(),
		hex.EncodeToString(key[:8])} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("printed %s", out.String())
		}
	}
	if !strings.Contains(out.String(), devAddress) {
		t.Error("the address is what should be printed")
	}
}
