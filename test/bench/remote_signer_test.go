package bench

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"perpkeeper/lab/devnet"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/signer"
)

// remoteSigner keeps the keys of a keeper, as a Web3Signer does. The first of them may be slow, or be lost.
type remoteSigner struct {
	slow time.Duration
	lost atomic.Bool

	chain *big.Int
	first common.Address
	keys  map[common.Address]*ecdsa.PrivateKey
}

// open starts it, and returns the configuration of a keeper that asks it.
func (s *remoteSigner) open(t *testing.T, chainID uint64, accounts []devnet.Account) signer.Config {
	t.Helper()
	s.chain, s.first = new(big.Int).SetUint64(chainID), accounts[0].Address
	s.keys = map[common.Address]*ecdsa.PrivateKey{}
	cfg := signer.DefaultConfig()
	for _, a := range accounts {
		s.keys[a.Address] = a.Key
		cfg.RemoteAccounts = append(cfg.RemoteAccounts, chain.Address(a.Address))
	}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	cfg.RemoteURL = secret.MustURL(server.URL)
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range []struct {
		into *string
		kind string
		der  []byte
	}{
		{&cfg.RemoteCA, "CERTIFICATE", server.Certificate().Raw},
		{&cfg.RemoteCert, "CERTIFICATE", server.Certificate().Raw},
		{&cfg.RemoteKey, "PRIVATE KEY", key},
	} {
		text := pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der})
		if *f.into = filepath.Join(dir, f.kind); os.WriteFile(*f.into, text, 0o600) != nil {
			t.Fatal("cannot write " + *f.into)
		}
	}
	return cfg
}

// ServeHTTP answers eth_signTransaction.
func (s *remoteSigner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ID     json.RawMessage        `json:"id"`
		Params [1]apitypes.SendTxArgs `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": asked.ID}
	from := asked.Params[0].From.Address()
	if from == s.first {
		time.Sleep(s.slow)
	}
	raw, err := s.sign(asked.Params[0])
	switch {
	case from == s.first && s.lost.Load():
		answer["error"] = map[string]any{"code": -32000, "message": "no key for " + from.Hex()}
	case err != nil:
		answer["error"] = map[string]any{"code": -32602, "message": err.Error()}
	default:
		answer["result"] = hexutil.Bytes(raw)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *remoteSigner) sign(args apitypes.SendTxArgs) ([]byte, error) {
	args.ChainID = (*hexutil.Big)(s.chain)
	tx, err := args.ToTransaction()
	if err != nil {
		return nil, err
	}
	signed, err := types.SignTx(tx, types.LatestSignerForChainID(s.chain), s.keys[args.From.Address()])
	if err != nil {
		return nil, err
	}
	return signed.MarshalBinary()
}
