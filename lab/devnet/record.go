package devnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/lab/devnet/exchange"
)

// Record is all that somebody has to know to use a devnet: where the exchange lives, where to reach chain and prices,
// and the keys.
type Record struct {
	exchange.Deployment
	RPCURL   string          `json:"rpcUrl"`
	WSURL    string          `json:"wsUrl"`
	FeedURL  string          `json:"feedUrl"`
	Mnemonic string          `json:"mnemonic"` // Of all accounts, path m/44'/60'/0'/0/index. Public: see Mnemonic.
	Accounts []RecordAccount `json:"accounts"`
}

// RecordAccount is a development account with its well-known key.
type RecordAccount struct {
	Purpose    string         `json:"purpose"` // deployer, faucet, feed signer, GLV manager or keeper
	Index      uint32         `json:"index"`
	Address    common.Address `json:"address"`
	PrivateKey hexutil.Bytes  `json:"privateKey"`
}

func recordAccount(purpose string, a Account) RecordAccount {
	return RecordAccount{Purpose: purpose, Index: a.Index, Address: a.Address, PrivateKey: crypto.FromECDSA(a.Key)}
}

// write puts the record in place in one step: a reader finds no file, or the whole record.
func (r *Record) write(path string) (err error) {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the deployment record: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the deployment record: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("writing the deployment record: %w", err), os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(append(raw, '\n'))
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// at replaces the host of an address by the one clients have to use; an empty host changes nothing.
func at(address, host string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", address, err)
	}
	if host != "" {
		u.Host = net.JoinHostPort(host, u.Port())
	}
	return u.String(), nil
}
