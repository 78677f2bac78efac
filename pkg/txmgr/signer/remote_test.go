package signer

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
)

// authority is a certificate authority of one test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	der  []byte
}

// newAuthority makes one whose own certificate ends at a given time.
func newAuthority(t *testing.T, ends time.Time) *authority {
	t.Helper()
	a := &authority{t: t, key: newTLSKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: ends.Add(-48 * time.Hour),
		NotAfter: ends,
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.der = der
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func newTLSKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue makes a certificate, for this machine's address, that is good for a day.
func (a *authority) issue() tls.Certificate {
	a.t.Helper()
	key := newTLSKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// vault is a remote signer: it demands a certificate of its authority, speaks both dialects, and signs what it is asked
// to, unless it is told to cheat.
type vault struct {
	t       *testing.T
	ca      *authority
	key     *ecdsa.PrivateKey
	chainID int64 // of a Web3Signer, which does not ask which
	// before may answer in the vault's place.
	before func(w http.ResponseWriter, r *http.Request, id json.RawMessage) (answered bool)
	// cheat changes what is signed.
	cheat func(*types.DynamicFeeTx) types.TxData
	// spoil changes the signed bytes.
	spoil func([]byte) []byte
	two   bool // it is spoken to over HTTP/2
	asked []map[string]any
}

func newVault(t *testing.T) *vault {
	t.Helper()
	key, err := crypto.HexToECDSA(devKey)
	if err != nil {
		t.Fatal(err)
	}
	return &vault{t: t, ca: newAuthority(t, time.Now().Add(24*time.Hour)), key: key, chainID: 56}
}

// open starts the vault and returns the signer that asks it. Adjust may change the configuration.
func (v *vault) open(adjust func(*Config)) Signer {
	v.t.Helper()
	server := httptest.NewUnstartedServer(v)
	server.Config.ErrorLog, server.EnableHTTP2 = log.New(io.Discard, "", 0), v.two
	server.TLS = &tls.Config{Certificates: []tls.Certificate{v.ca.issue()}, ClientCAs: v.ca.pool(),
		ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	v.t.Cleanup(server.Close)
	cfg := v.config(server.URL)
	if adjust != nil {
		adjust(&cfg)
	}
	all, err := Open(cfg)
	if err != nil {
		v.t.Fatal(err)
	}
	return all[0]
}

// config is that of a keeper whom the vault knows.
func (v *vault) config(at string) Config {
	v.t.Helper()
	cfg := DefaultConfig()
	cfg.RemoteURL = secret.MustURL(strings.Replace(at, "https://", "https://someone:hunter2@", 1))
	cfg.RemoteAccounts = []chain.Address{chain.Address(common.HexToAddress(devAddress))}
	cfg.RemoteTimeout = 20 * time.Second
	v.certify(&cfg, v.ca, v.ca)
	return cfg
}

// certify writes the certificates of a keeper: whom it trusts, and who vouches for it.
func (v *vault) certify(cfg *Config, trusted, by *authority) {
	v.t.Helper()
	dir, own := v.t.TempDir(), by.issue()
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, file := range []struct {
		into       *string
		name, kind string
		der        []byte
	}{
		{&cfg.RemoteCA, "ca.pem", "CERTIFICATE", trusted.der},
		{&cfg.RemoteCert, "own.pem", "CERTIFICATE", own.Certificate[0]},
		{&cfg.RemoteKey, "own.key", "PRIVATE KEY", key},
	} {
		*file.into = filepath.Join(dir, file.name)
		if err := os.WriteFile(*file.into, pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.der}),
			0o600); err != nil {
			v.t.Fatal(err)
		}
	}
}

func (v *vault) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		v.t.Errorf("asked with what is no JSON: %v", err)
	}
	if v.before != nil && v.before(w, r, asked.ID) {
		return
	}
	var params [1]apitypes.SendTxArgs // as Clef reads it
	var plain [1]map[string]any
	if json.Unmarshal(asked.Params, &params) != nil || json.Unmarshal(asked.Params, &plain) != nil {
		v.t.Errorf("asked for %s", asked.Params)
		return
	}
	v.asked = append(v.asked, plain[0])
	args := params[0]
	if asked.Method == "eth_signTransaction" {
		args.ChainID = (*hexutil.Big)(big.NewInt(v.chainID))
	}
	tx, err := args.ToTransaction()
	if err != nil {
		v.t.Error(err)
		return
	}
	signed, raw := v.sign(tx)
	answer := map[string]any{"jsonrpc": "2.0", "id": asked.ID, "result": hexutil.Bytes(raw)}
	if asked.Method == "account_signTransaction" {
		answer["result"] = map[string]any{"raw": hexutil.Bytes(raw), "tx": signed}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (v *vault) sign(tx *types.Transaction) (*types.Transaction, []byte) {
	data := types.TxData(&types.DynamicFeeTx{
		ChainID: tx.ChainId(), Nonce: tx.Nonce(), GasTipCap: tx.GasTipCap(), GasFeeCap: tx.GasFeeCap(), Gas: tx.Gas(),
		To: tx.To(), Value: tx.Value(), Data: tx.Data(),
	})
	if v.cheat != nil {
		data = v.cheat(data.(*types.DynamicFeeTx))
	}
	unsigned := types.NewTx(data)
	id := unsigned.ChainId()
	if id.Sign() == 0 {
		id = tx.ChainId()
	}
	signed, err := types.SignNewTx(v.key, types.LatestSignerForChainID(id), data)
	if err != nil {
		v.t.Error(err)
		return unsigned, nil
	}
	raw, err := signed.MarshalBinary()
	if err != nil {
		v.t.Error(err)
	}
	if v.spoil != nil {
		raw = v.spoil(raw)
	}
	return signed, raw
}

func someTx() Tx {
	return Tx{ChainID: 56, Nonce: 7, To: chain.Address{9}, Data: []byte{1, 2, 3}, Gas: 21_000, Tip: 50_000_000,
		Cap: 60_000_000}
}

// A remote signer's bytes are those that the same key would have signed here, in either dialect.
func TestRemoteSigns(t *testing.T) {
	for _, dialect := range []string{web3Signer, clef} {
		t.Run(dialect, func(t *testing.T) {
			v := newVault(t)
			s := v.open(func(c *Config) { c.RemoteDialect = dialect })
			for _, tx := range []Tx{someTx(), {ChainID: 56, To: chain.Address{1}, Gas: 1, Tip: 1, Cap: 1}} {
				raw, hash, err := s.Sign(t.Context(), tx)
				if err != nil {
					t.Fatal(err)
				}
				want, wantHash, err := dev(t, devKey)[0].Sign(t.Context(), tx)
				if err != nil || !bytes.Equal(raw, want) || hash != wantHash {
					t.Errorf("got %x (%s), want %x (%s), %v", raw, hash, want, wantHash, err)
				}
			}
			if got := v.asked[0]["data"]; got != "0x010203" || v.asked[0]["from"] != devAddress ||
				v.asked[0]["maxFeePerGas"] != "0x3938700" {
				t.Errorf("asked for %v", v.asked[0])
			}
			if fmt.Sprint(s) != devAddress || fmt.Sprintf("%+v %#v", s, s) != devAddress+" "+devAddress {
				t.Errorf("prints as %+v", s)
			}
		})
	}
}

// A remote signer is not believed: what it returns is used only if it is the transaction that was asked for.
func TestRemoteThatLiesIsRefused(t *testing.T) {
	stranger, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	one := big.NewInt(1)
	cheats := map[string]func(*types.DynamicFeeTx){
		"the chain id differs":  func(tx *types.DynamicFeeTx) { tx.ChainID = big.NewInt(97) },
		"the nonce differs":     func(tx *types.DynamicFeeTx) { tx.Nonce++ },
		"the recipient differs": func(tx *types.DynamicFeeTx) { tx.To = &common.Address{1} },
		"the value differs":     func(tx *types.DynamicFeeTx) { tx.Value = one },
		"the data differs":      func(tx *types.DynamicFeeTx) { tx.Data = append(bytes.Clone(tx.Data), 0) },
		"the gas limit differs": func(tx *types.DynamicFeeTx) { tx.Gas++ },
		"the tip differs":       func(tx *types.DynamicFeeTx) { tx.GasTipCap = one },
		"the fee cap differs":   func(tx *types.DynamicFeeTx) { tx.GasFeeCap = new(big.Int).Add(tx.GasFeeCap, one) },
		"the access list differs": func(tx *types.DynamicFeeTx) {
			tx.AccessList = types.AccessList{
				{Address: common.Address{1}}}
		},
	}
	vaults := map[string]func(*vault){
		"signed with the key of": func(v *vault) { v.key = stranger },
		"the type differs": func(v *vault) {
			v.cheat = func(tx *types.DynamicFeeTx) types.TxData {
				return &types.LegacyTx{Nonce: tx.Nonce, GasPrice: tx.GasFeeCap, Gas: tx.Gas, To: tx.To, Value: tx.Value,
					Data: tx.Data}
			}
		},
		"is no transaction": func(v *vault) {
			v.spoil = func(raw []byte) []byte {
				return append(raw,
					0)
			}
		},
		"of 0 bytes is no transaction": func(v *vault) { v.spoil = func([]byte) []byte { return nil } },
		"another transaction: the nonce ": func(v *vault) {
			v.cheat = func(tx *types.DynamicFeeTx) types.TxData {
				tx.Nonce = 0
				return tx
			}
		},
		"it answered another request": func(v *vault) {
			v.before = func(w http.ResponseWriter, _ *http.Request, _ json.RawMessage) bool {
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":99,"result":"0x02"}`)
				return true
			}
		},
	}
	for want, change := range cheats {
		vaults[want] = func(v *vault) { v.cheat = func(tx *types.DynamicFeeTx) types.TxData { change(tx); return tx } }
	}
	for want, set := range vaults {
		for _, dialect := range []string{web3Signer, clef} {
			t.Run(want+" "+dialect, func(t *testing.T) {
				v := newVault(t)
				set(v)
				mustRefuse(t, v.open(func(c *Config) { c.RemoteDialect = dialect }), want)
			})
		}
	}
}

// mustRefuse demands an error of one line, without the address's password.
func mustRefuse(t *testing.T, s Signer, want string) {
	t.Helper()
	raw, hash, err := s.Sign(t.Context(), someTx())
	if err == nil || raw != nil || !hash.IsZero() {
		t.Fatalf("signed as %s, %v", hash, err)
	}
	if text := err.Error(); !strings.Contains(text, want) || strings.ContainsAny(text, "\n") ||
		strings.Contains(text, "hunter2") ||
		!strings.Contains(text, "to sign nonce 7 of "+devAddress) {
		t.Errorf("told %q, want %q in it", text, want)
	}
}

func TestRemoteThatFails(t *testing.T) {
	answer := func(status int, body string) func(*vault) {
		return func(v *vault) {
			v.before = func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) bool {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", string(id)))
				return true
			}
		}
	}
	long := strings.Repeat("x", 10_000)
	refusal := `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no such\naccount"}}`
	for name, c := range map[string]struct {
		set  func(*vault)
		want string
	}{
		"refuses":           {answer(200, refusal), `it refused: "no such\naccount" (code -32000)`},
		"refuses as broken": {answer(500, refusal), `it refused: "no such\naccount" (code -32000)`},
		"a long refusal": {answer(200, strings.Replace(refusal, "account", long, 1)),
			`it refused: "no such\n` + long[:192] + `"`},
		"a page":    {answer(502, "<html>"), "HTTP status 502 and no JSON-RPC"},
		"nothing":   {answer(200, ""), "HTTP status 200 and no JSON-RPC"},
		"not found": {answer(404, `{}`), "HTTP status 404"},
		"elsewhere": {answer(307, `{}`), "HTTP status 307"},
		"null":      {answer(200, `{"id":ID,"result":null}`), "its answer holds no transaction"},
		"a number": {answer(200, `{"id":ID,"result":7}`), "its answer holds no transaction (is " +
			"signer.remote_dialect right?)"},
		"the other dialect": {answer(200, `{"id":ID,"result":{"raw":"0x02"}}`), "its answer holds no transaction " +
			"(is signer.remote_dialect right?)"},
		"endless": {answer(200, `{"id":ID,"result":"`+strings.Repeat("0", maxAnswer)+`"}`),
			"is longer than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t)
			c.set(v)
			mustRefuse(t, v.open(nil), c.want)
		})
	}
}

// Rule 7 of the sender: silence is no answer. A slow signer costs no more than its time.
func TestRemoteThatIsSlow(t *testing.T) {
	v := newVault(t)
	v.before = func(_ http.ResponseWriter, r *http.Request, _ json.RawMessage) bool {
		<-r.Context().Done()
		return true
	}
	s := v.open(func(c *Config) { c.RemoteTimeout = 50 * time.Millisecond })
	mustRefuse(t, s, "no answer within 50ms")
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("the lease term is over"))
	if _, _, err := s.Sign(stopped, someTx()); err == nil || !strings.Contains(err.Error(), "the lease term is over") {
		t.Errorf("told %v", err)
	}
}

// Both sides show certificates, and each is asked for by the other.
func TestRemoteCertificates(t *testing.T) {
	other := newAuthority(t, time.Now().Add(24*time.Hour))
	old := newAuthority(t, time.Now().Add(-time.Hour))
	for name, c := range map[string]struct {
		set  func(v *vault, c *Config)
		want string
	}{
		"ours is of an authority they do not know": {func(v *vault, c *Config) { v.certify(c, v.ca, other) }, "tls: "},
		"theirs is of an authority we do not know": {func(v *vault, c *Config) { v.certify(c, other, v.ca) },
			"certificate signed by unknown authority"},
		"the name is another": {func(_ *vault, c *Config) { c.RemoteURL = rename(c.RemoteURL) },
			"but wanted to match localhost"},
		"nobody is there": {func(_ *vault, c *Config) { c.RemoteURL = secret.MustURL("https://127.0.0.1:1") },
			"connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t)
			mustRefuse(t, v.open(func(cfg *Config) { c.set(v, cfg) }), c.want)
		})
	}
	t.Run("their authority has expired", func(t *testing.T) {
		v := newVault(t)
		v.ca = old
		mustRefuse(t, v.open(nil), "certificate has expired or is not yet valid")
	})
}

func rename(u secret.URL) secret.URL {
	return secret.MustURL(strings.Replace(u.Reveal(), "127.0.0.1", "localhost", 1))
}

func TestRemoteConfigSaysWhatIsWrong(t *testing.T) {
	v := newVault(t)
	good := v.config("https://127.0.0.1:9")
	for name, c := range map[string]struct {
		set  func(*Config)
		want string
	}{
		"a second place": {func(c *Config) { c.KeystoreDir = "/keys" }, "remote_url: keys come from one place, and " +
			"several are named: keystore_dir, remote_url"},
		"no encryption": {func(c *Config) { c.RemoteURL = secret.MustURL("http://u:hunter2@x") },
			"remote_url: http://***@x is not an https address"},
		"no authority":   {func(c *Config) { c.RemoteCA = "" }, "remote_ca: is empty"},
		"no certificate": {func(c *Config) { c.RemoteCert = "" }, "remote_cert: is empty"},
		"no key":         {func(c *Config) { c.RemoteKey = "" }, "remote_key: is empty"},
		"no accounts":    {func(c *Config) { c.RemoteAccounts = nil }, "remote_accounts: is empty"},
		"dialect": {func(c *Config) { c.RemoteDialect = "klingon" },
			`remote_dialect: "klingon" is neither web3signer nor clef`},
		"twice": {func(c *Config) { c.RemoteAccounts = append(c.RemoteAccounts, c.RemoteAccounts...) },
			"configured twice"},
		"ca file":      {func(c *Config) { c.RemoteCA = c.RemoteKey }, "signer.remote_ca: no certificate in"},
		"key file":     {func(c *Config) { c.RemoteKey = c.RemoteCert }, "are no pair of certificate and key"},
		"missing file": {func(c *Config) { c.RemoteCert = "/nowhere" }, "signer.remote_cert: open /nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			c.set(&cfg)
			_, err := Open(cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("told %v, want %q", err, c.want)
			}
		})
	}
	t.Run("a key for everybody", func(t *testing.T) {
		if err := os.Chmod(good.RemoteKey, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(good); err == nil ||
			!strings.Contains(err.Error(), "own.key is open to every user of this machine, mode 0644") {
			t.Errorf("told %v", err)
		}
	})
}
