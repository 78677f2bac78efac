package signer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/keystore"
)

func openDir(dir string) (all []Signer, err error) {
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
	sealed, err := readPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("reading a keystore: %w", err)
	}
	password, err := readPrivate(passwordFile)
	if err != nil {
		return nil, fmt.Errorf("reading the password of keystore %s: %w", file, err)
	}
	if err := checkRoom(sealed, memoryLimit(groups)); err != nil {
		return nil, fmt.Errorf("keystore %s: %w", file, err)
	}
	key, err := decrypt(sealed, strings.TrimRight(string(password), "\r\n"))
	switch {
	case errors.Is(err, keystore.ErrDecrypt):
		return nil, fmt.Errorf("keystore %s does not open with the password in %s", file, passwordFile)
	case err != nil:
		// the decoder's error may quote the file
		return nil, fmt.Errorf("%s is no keystore file (an encrypted key as geth writes it)", file)
	}
	return newLocal(key.PrivateKey), nil
}

// decrypt turns the panics of the library, which trusts the parameters in the file, into errors without what they
// quote.
func decrypt(sealed []byte, password string) (key *keystore.Key, err error) {
	defer func() {
		if recover() != nil {
			key, err = nil, errors.New("the parameters make no sense")
		}
		// Opening a key at geth's cost takes 256 MB for a moment; the process that goes on needs a tenth of that.
		debug.FreeOSMemory()
	}()
	return keystore.DecryptKey(sealed, password)
}

// forOthers are the permissions of those who are neither the file's owner nor of its group.
const forOthers = 0o007

// readPrivate reads a file that only its owner, and its group where there is one for this purpose, may have access to.
func readPrivate(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if open := info.Mode().Perm() & forOthers; open != 0 {
		return nil, fmt.Errorf("%s is open to every user of this machine, mode %04o (chmod o-rwx %s)", file,
			info.Mode().Perm(), file)
	}
	const most = 1 << 20
	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes, too many for a key or a password", file, info.Size())
	}
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return text, nil
}
