package devnet

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// mnemonic is the seed phrase every Ethereum development tool uses. Its keys are public: whatever they own on a real
// chain belongs to everybody.
const mnemonic = "test test test test test test test test test test test junk" //nolint:dupword // That is the phrase.

// Fixed indices of the development accounts.
const (
	DeployerIndex   = 0
	FaucetIndex     = 1
	FeedSignerIndex = 2
	glvManagerIndex = 3
	FirstKeeper     = 10 // The keepers' senders: FirstKeeper … FirstKeeper+Keepers-1.
	Keepers         = 12 // Three regions with four senders each.
	FirstTrader     = 100
)

// Account is a development account.
type Account struct {
	Index   uint32
	Key     *ecdsa.PrivateKey
	Address common.Address
}

// Accounts derives count development accounts from index first on (BIP-39, BIP-32 path m/44'/60'/0'/0/index).
func Accounts(first, count uint32) ([]Account, error) {
	seed, err := pbkdf2.Key(sha512.New, mnemonic, []byte("mnemonic"), 2048, 64)
	if err != nil {
		return nil, fmt.Errorf("deriving the development seed: %w", err)
	}
	parent := extendedKey(hmac512([]byte("Bitcoin seed"), seed))
	const hardened = 1 << 31
	for _, index := range []uint32{hardened + 44, hardened + 60, hardened, 0} {
		parent = parent.child(index)
	}
	accounts := make([]Account, 0, count)
	for index := first; index < first+count; index++ {
		secret := parent.child(index)
		key, err := crypto.ToECDSA(secret[:32])
		if err != nil {
			return nil, fmt.Errorf("deriving development account %d: %w", index, err)
		}
		accounts = append(accounts, Account{Index: index, Key: key, Address: crypto.PubkeyToAddress(key.PublicKey)})
	}
	return accounts, nil
}

// extendedKey is a BIP-32 private key: 32 bytes of secret, 32 bytes of chain code.
type extendedKey [64]byte

// child derives a key. The one case in 2^127 in which BIP-32 skips an index does not occur with a fixed seed and the
// indices in use.
func (k extendedKey) child(index uint32) extendedKey {
	var data []byte
	if index >= 1<<31 {
		data = append([]byte{0}, k[:32]...)
	} else {
		x, y := crypto.S256().ScalarBaseMult(k[:32])
		data = append([]byte{2 + byte(y.Bit(0))}, x.FillBytes(make([]byte, 32))...)
	}
	next := extendedKey(hmac512(k[32:], binary.BigEndian.AppendUint32(data, index)))
	secret := new(big.Int).SetBytes(next[:32])
	secret.Add(secret, new(big.Int).SetBytes(k[:32])).Mod(secret, crypto.S256().Params().N)
	secret.FillBytes(next[:32])
	return next
}

func hmac512(key, data []byte) []byte {
	mac := hmac.New(sha512.New, key)
	mac.Write(data)
	return mac.Sum(nil)
}
