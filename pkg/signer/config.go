package signer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/secret"
)

// Config says where a keeper's keys are.
type Config struct {
	Keystores []Keystore      `toml:"keystore" help:"encrypted key files, one per account"`
	Dev       bool            `toml:"dev" help:"allow dev_keys: for development and demonstration only"`
	DevKeys   []secret.String `toml:"dev_keys" help:"private keys as hexadecimal digits; refused unless dev is true"`
}

// Keystore is one encrypted key in a file.
type Keystore struct {
	File         string `toml:"file" help:"encrypted key (Web3 secret storage, as geth writes it)"`
	PasswordFile string `toml:"password_file" help:"file that holds the key's password and nothing else"`
}

// Validate names every setting that cannot work. It opens no file.
func (c Config) Validate() error {
	var problems []error
	if len(c.DevKeys) > 0 && !c.Dev {
		problems = append(problems, errors.New("dev_keys: raw keys are for development only (use [[signer.keystore]], or set signer.dev = true on a test chain)"))
	}
	if len(c.DevKeys)+len(c.Keystores) == 0 {
		problems = append(problems, errors.New("keystore: no key (name a [[signer.keystore]] with file and password_file)"))
	}
	for i, k := range c.Keystores {
		if k.File == "" || k.PasswordFile == "" {
			problems = append(problems, fmt.Errorf("keystore[%d]: needs both file and password_file", i))
		}
	}
	return errors.Join(problems...)
}

// Open reads every key. Decrypting a keystore file takes about a second.
func Open(cfg Config) ([]Signer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var all []Signer
	for _, k := range cfg.Keystores {
		s, err := k.open()
		if err != nil {
			return nil, err
		}
		all = append(all, s)
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

func (k Keystore) open() (Signer, error) {
	sealed, err := os.ReadFile(k.File)
	if err != nil {
		return nil, fmt.Errorf("reading a keystore: %w", err)
	}
	password, err := os.ReadFile(k.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("reading the password of keystore %s: %w", k.File, err)
	}
	key, err := keystore.DecryptKey(sealed, strings.TrimRight(string(password), "\r\n"))
	switch {
	case errors.Is(err, keystore.ErrDecrypt):
		return nil, fmt.Errorf("keystore %s does not open with the password in %s", k.File, k.PasswordFile)
	case err != nil:
		return nil, fmt.Errorf("%s is no keystore file (an encrypted key as geth writes it)", k.File) // the decoder's error may quote the file
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
