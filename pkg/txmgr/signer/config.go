package signer

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/check"
	"perpkeeper/pkg/setting/secret"
)

// Config is where a keeper's keys are: in exactly one of three places. Start from DefaultConfig.
type Config struct {
	KeystoreDir string `toml:"keystore_dir" help:"folder of encrypted keys as geth writes them: NAME.json, and its password in NAME.password"`

	RemoteURL      secret.URL      `toml:"remote_url" file:"none" help:"a signer that keeps the keys and is asked by JSON-RPC, https only"`
	RemoteAccounts []chain.Address `toml:"remote_accounts" help:"accounts of the remote signer to sign with"`
	RemoteDialect  string          `toml:"remote_dialect" help:"what the remote signer speaks: web3signer, or clef"`
	RemoteCA       string          `toml:"remote_ca" help:"PEM file of the authority that signed the remote signer's certificate; no other is trusted"`
	RemoteCert     string          `toml:"remote_cert" help:"PEM file of the certificate by which the remote signer knows this process"`
	RemoteKey      string          `toml:"remote_key" help:"PEM file of the key to remote_cert"`
	// RemoteTimeout: how long one signature may take.
	RemoteTimeout time.Duration `toml:"-"`

	Dev     bool            `toml:"dev" help:"allow dev_keys: for development and demonstration only"`
	DevKeys []secret.String `toml:"dev_keys" file:"none" help:"private keys as hexadecimal digits; refused unless dev is true"`
}

// DefaultConfig names no key. A remote signer is a Web3Signer that answers within a second.
func DefaultConfig() Config { return Config{RemoteDialect: web3Signer, RemoteTimeout: time.Second} }

// Validate names every setting that cannot work. It opens no file.
func (c Config) Validate() error {
	if len(c.DevKeys) > 0 && !c.Dev {
		return errors.New("dev_keys: raw keys are for development only (use keystore_dir or remote_url, or set " +
			"signer.dev = true on a test chain)")
	}
	var sources []string
	for name, set := range map[string]bool{"keystore_dir": c.KeystoreDir != "", "remote_url": c.RemoteURL.IsSet(),
		"dev_keys": len(c.DevKeys) > 0} {
		if set {
			sources = append(sources, name)
		}
	}
	slices.Sort(sources)
	switch {
	case len(sources) > 1:
		return fmt.Errorf("%s: keys come from one place, and several are named: %s (remove all but one)", sources[1],
			strings.Join(sources, ", "))
	case c.RemoteURL.IsSet():
		return c.validateRemote()
	}
	return nil
}

// Demand names what is missing where there has to be a key. A process that never signs has none, and is configured all
// the same.
func (c Config) Demand() error {
	if c.KeystoreDir == "" && !c.RemoteURL.IsSet() && len(c.DevKeys) == 0 {
		return errors.New("keystore_dir: no key (name the folder of the encrypted keys, or a remote signer in " +
			"remote_url)")
	}
	return nil
}

func (c Config) validateRemote() error {
	at, err := url.Parse(c.RemoteURL.Reveal())
	_, known := dialects[c.RemoteDialect]
	file := func(key, name string) error {
		return check.Refuse(name == "", "%s: is empty (a remote signer and this process must both show certificates)",
			key)
	}
	return errors.Join(
		check.Refuse(err != nil || at.Scheme != "https", "remote_url: %s is not an https address (whoever can ask a "+
			"signer can spend with it)", c.RemoteURL),
		file("remote_ca", c.RemoteCA), file("remote_cert", c.RemoteCert), file("remote_key", c.RemoteKey),
		check.Refuse(len(c.RemoteAccounts) == 0, "remote_accounts: is empty (name the accounts to sign with)"),
		check.Refuse(!known, "remote_dialect: %q is neither %s nor %s", c.RemoteDialect, web3Signer, clef),
	)
}

// Open returns the signers of every account, keystores in the order of their files' names. Decrypting one takes about a
// second; a remote signer is not asked anything yet.
func Open(cfg Config) (all []Signer, err error) {
	if err := errors.Join(cfg.Demand(), cfg.Validate()); err != nil {
		return nil, fmt.Errorf("signer: %w", err)
	}
	switch {
	case cfg.KeystoreDir != "":
		all, err = openDir(cfg.KeystoreDir)
	case cfg.RemoteURL.IsSet():
		all, err = openRemote(cfg)
	default:
		all, err = openDevs(cfg.DevKeys)
	}
	if err != nil {
		return nil, err
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

func openDevs(texts []secret.String) (all []Signer, err error) {
	for i, text := range texts {
		s, err := openDev(text)
		if err != nil {
			return nil, fmt.Errorf("signer.dev_keys: number %d %w", i+1, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// openDev writes nothing about the key's digits, not even which one is wrong.
func openDev(text secret.String) (Signer, error) {
	key, err := crypto.HexToECDSA(strings.TrimPrefix(text.Reveal(), "0x"))
	if err != nil {
		return nil, errors.New("is no private key (64 hexadecimal digits)")
	}
	return newLocal(key), nil
}
