package signer

import (
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"perpkeeper/pkg/chain"
)

// forGroup is the mode of the files that [Create] writes: for their owner and the group that keepers run in.
const forGroup = 0o640

// Create writes ADDRESS.json, an encrypted keystore at geth's full cost, and ADDRESS.password, 32 random bytes in hex,
// into a folder that is there already, and returns the address. The key is a new one, or raw if that is not empty: 32
// bytes in hex, 0x or not. A file that is there is never replaced. No error quotes a key.
func Create(dir, raw string) (chain.Address, error) {
	key, err := newKey(raw)
	if err != nil {
		return chain.Address{}, err
	}
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	password := hex.EncodeToString(random)
	address := crypto.PubkeyToAddress(key.PublicKey)
	sealed, err := keystore.EncryptKey(&keystore.Key{Id: uuid.New(), Address: address, PrivateKey: key}, password,
		keystore.StandardScryptN, keystore.StandardScryptP)
	if err != nil {
		return chain.Address{}, fmt.Errorf("encrypting the key of %s: %w", address, err)
	}
	name := filepath.Join(dir, strings.ToLower(address.Hex()))
	// The password first: a keystore without one would keep a sender from starting.
	if err := writeNew(name+".password", []byte(password+"\n")); err != nil {
		return chain.Address{}, fmt.Errorf("writing the password of %s: %w", address, err)
	}
	if err := writeNew(name+".json", sealed); err != nil {
		return chain.Address{}, fmt.Errorf("writing the keystore of %s: %w", address, err)
	}
	return chain.Address(address), nil
}

func newKey(raw string) (*ecdsa.PrivateKey, error) {
	if raw == "" {
		return crypto.GenerateKey()
	}
	key, err := crypto.HexToECDSA(strings.TrimPrefix(raw, "0x"))
	if err != nil {
		return nil, errors.New("what was given is no private key (32 bytes in hex)") // the library's error may quote it
	}
	return key, nil
}

// writeNew writes a file that was not there, with the mode whatever the umask says.
func writeNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(forGroup), f.Sync(), f.Close())
}
