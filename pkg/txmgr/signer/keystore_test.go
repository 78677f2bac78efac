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
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"perpkeeper/pkg/setting/secret"
)

// The test vector of the Web3 Secret Storage Definition for scrypt, at full cost; its password is testpassword.
const standardVector = `{"crypto":{"cipher":"aes-128-ctr","cipherparams":{"iv":"83dbcc02d8ccb40e466191a123791e0e"},
	"ciphertext":"d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
	"kdf":"scrypt","kdfparams":{"dklen":32,"n":262144,"p":8,"r":1,"salt":"ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19"},
	"mac":"2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097"},
	"id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}`

func TestStandardKeystoreOpens(t *testing.T) {
	all, err := Open(folder(t, map[string]string{"k.json": standardVector, "k.password": "testpassword\r\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(crypto.FromECDSA(all[0].(*local).
		key)); got != "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d" {
		t.Errorf("opened another key, of %s", all[0].Address())
	}
}

// A group that was made for keepers may read keys; what is for its owner alone is fine as well.
func TestGroupMayReadKeys(t *testing.T) {
	cfg := folder(t, map[string]string{"a.json": sealed(t, "x"), "a.password": "x"})
	for _, name := range []string{"a.json", "a.password"} {
		if err := os.Chmod(filepath.Join(cfg.KeystoreDir, name), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(cfg); err != nil {
		t.Error(err)
	}
}

// Keys never in logs or errors, whatever the key, and whatever is wrong with the file it is in.
func TestNothingPrintsKeyBytes(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key")
		password := rapid.StringMatching(`[a-zA-Z0-9]{12,20}`).Draw(t, "password")
		text := hex.EncodeToString(key)
		var out bytes.Buffer
		told := func(cfg Config) {
			all, err := Open(cfg)
			for _, v := range []any{all, err, cfg, &cfg, struct{ hidden []Signer }{all}} {
				for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
					fmt.Fprintf(&out, verb+"\n", v)
				}
			}
			if json.NewEncoder(&out).Encode([]any{all, cfg}) != nil {
				t.Fatal("a signer cannot be encoded")
			}
		}
		told(Config{Dev: true, DevKeys: []secret.String{secret.New(spoiled(t, text))}})
		told(Config{DevKeys: []secret.String{secret.New(text)}})
		write(t, dir, "a.password", password)
		write(t, dir, "a.json", spoiled(t, keystoreOf(t, key, rapid.SampledFrom([]string{password, password + "!"}).
			Draw(t, "sealed with"))))
		told(Config{KeystoreDir: dir})
		write(t, dir, "a.json", rapid.SampledFrom([]string{text, `{"crypto":"` + text + `"}`, `"` + text,
			text + password}).Draw(t, "plain"))
		told(Config{KeystoreDir: dir})

		shown := strings.ToLower(out.String())
		for at := 0; at+16 <= len(text); at += 2 {
			if strings.Contains(shown, text[at:at+16]) {
				t.Fatalf("eight bytes of the key are in what was printed:\n%s", out.String())
			}
		}
		for _, hidden := range []string{new(big.Int).SetBytes(key).String(), strings.ToLower(password),
			hex.EncodeToString([]byte(password))} {
			if strings.Contains(shown, hidden) {
				t.Fatalf("%q is in what was printed:\n%s", hidden, out.String())
			}
		}
	})
}

// keystoreOf seals a key as cheaply as can be. What is no key gets the file of another one.
func keystoreOf(t *rapid.T, key []byte, password string) string {
	private, err := crypto.ToECDSA(key)
	if err != nil {
		private, _ = crypto.HexToECDSA(devKey)
	}
	text, err := keystore.EncryptKey(&keystore.Key{Id: uuid.New(), Address: crypto.PubkeyToAddress(private.PublicKey),
		PrivateKey: private}, password, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// spoiled is a text as it is, or cut, or with a character changed.
func spoiled(t *rapid.T, text string) string {
	at := rapid.IntRange(0, len(text)-1).Draw(t, "where")
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		return text[:at]
	case 1:
		return text[:at] + string(rapid.SampledFrom([]rune("z\"{0,")).Draw(t, "what")) + text[at+1:]
	}
	return text
}

func write(t *rapid.T, dir, name, text string) {
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
