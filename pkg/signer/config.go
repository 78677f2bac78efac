package signer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/secret"
)

// Config says where a keeper's keys are.
type Config struct {
	KeystoreDir string          `toml:"keystore_dir" help:"folder of encrypted keys as geth writes them: NAME.json, and its password in NAME.password"`
	Dev         bool            `toml:"dev" help:"allow dev_keys: for development and demonstration only"`
	DevKeys     []secret.String `toml:"dev_keys" help:"private keys as hexadecimal digits; refused unless dev is true"`
}

// Validate names every setting that cannot work. It opens no file.
func (c Config) Validate() error {
	if len(c.DevKeys) > 0 && !c.Dev {
		return errors.New("dev_keys: raw keys are for development only (use keystore_dir, or set signer.dev = true on a test chain)")
	}
	if len(c.DevKeys) == 0 && c.KeystoreDir == "" {
		return errors.New("keystore_dir: no key (name the folder of the encrypted keys)")
	}
	return nil
}

// Open reads every key, in the order of the files' names. Decrypting one takes about a second.
func Open(cfg Config) ([]Signer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	all, err := openDir(cfg.KeystoreDir)
	if err != nil {
		return nil, err
	}
	for i, text := range cfg.DevKeys {
		s, err := openDev(text)
		if err != nil {
			return nil, fmt.Errorf("signer.dev_keys: number %d %w", i+1, err)
		}
		all = append(all, s)
	}
	return all, distinct(all)
}

// distinct refuses two keys of one account: they would be two writers of its nonces.
func distinct(all []Signer) error {
	var seen []chain.Address
	for _, s := range all {
		if slices.Contains(seen, s.Address()) {
			return fmt.Errorf("account %s is configured twice", s.Address())
		}
		seen = append(seen, s.Address())
	}
	return nil
}

func openDir(dir string) (all []Signer, err error) {
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading signer.keystore_dir: %w", err)
	}
	for _, e := range entries {
		name, sealed := strings.CutSuffix(e.Name(), ".json")
		if !sealed || e.IsDir() {
			continue
		}
		s, err := openKeystore(filepath.Join(dir, e.Name()), filepath.Join(dir, name+".password"))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("signer.keystore_dir: no key in %s (put NAME.json and NAME.password there)", dir)
	}
	return all, nil
}

func openKeystore(file, passwordFile string) (Signer, error) {
	sealed, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a keystore: %w", err)
	}
	password, err := os.ReadFile(passwordFile)
	if err != nil {
		return nil, fmt.Errorf("reading the password of keystore %s: %w", file, err)
	}
	key, err := keystore.DecryptKey(sealed, strings.TrimRight(string(password), "\r\n"))
	switch {
	case errors.Is(err, keystore.ErrDecrypt):
		return nil, fmt.Errorf("keystore %s does not open with the password in %s", file, passwordFile)
	case err != nil:
		return nil, fmt.Errorf("%s is no keystore file (an encrypted key as geth writes it)", file) // the decoder's error may quote the file
	}
	return newLocal(key.PrivateKey), nil
}

// openDev says no word about the key's digits, not even which one is wrong.
func openDev(text secret.String) (Signer, error) {
	key, err := crypto.HexToECDSA(strings.TrimPrefix(text.Reveal(), "0x"))
	if err != nil {
		return nil, errors.New("is no private key (64 hexadecimal digits)")
	}
	return newLocal(key), nil
}
