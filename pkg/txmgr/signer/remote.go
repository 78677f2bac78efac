package signer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"perpkeeper/pkg/chain"
)

// The dialects of remote signers. They differ in the method's name and in what surrounds the bytes of the answer.
const (
	// web3Signer: Consensys Web3Signer in its eth1 mode: eth_signTransaction. The chain id is that signer's own
	// setting.
	web3Signer = "web3signer"
	// clef: geth's Clef: account_signTransaction. It speaks no TLS itself, so that a proxy has to stand before it.
	clef = "clef"
)

// dialect is how to ask for a signature and where in the answer it is.
type dialect struct {
	method string
	raw    func(json.RawMessage) (hexutil.Bytes, error)
}

var dialects = map[string]dialect{
	web3Signer: {"eth_signTransaction", func(result json.RawMessage) (raw hexutil.Bytes, err error) {
		return raw, json.Unmarshal(result, &raw)
	}},
	clef: {"account_signTransaction", func(result json.RawMessage) (hexutil.Bytes, error) {
		var answer struct {
			Raw hexutil.Bytes `json:"raw"`
		}
		return answer.Raw, json.Unmarshal(result, &answer)
	}},
}

// remote is one account of a signer that is asked over the network.
type remote struct {
	address chain.Address
	dialect dialect
	line    *line
	timeout time.Duration
}

// openRemote prepares the accounts of a remote signer, which share their connections.
func openRemote(cfg Config) (all []Signer, err error) {
	secured, err := mutualTLS(cfg)
	if err != nil {
		return nil, err
	}
	l := newLine(cfg.RemoteURL, secured, cfg.RemoteTimeout)
	for _, account := range cfg.RemoteAccounts {
		all = append(all, &remote{address: account, dialect: dialects[cfg.RemoteDialect], line: l,
			timeout: cfg.RemoteTimeout})
	}
	return all, nil
}

// mutualTLS reads the certificates, once: a process has to be started again when they were renewed.
func mutualTLS(cfg Config) (*tls.Config, error) {
	authority, err := os.ReadFile(cfg.RemoteCA)
	if err != nil {
		return nil, fmt.Errorf("signer.remote_ca: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("signer.remote_ca: no certificate in %s", cfg.RemoteCA)
	}
	certificate, err := os.ReadFile(cfg.RemoteCert)
	if err != nil {
		return nil, fmt.Errorf("signer.remote_cert: %w", err)
	}
	key, err := readPrivate(cfg.RemoteKey)
	if err != nil {
		return nil, fmt.Errorf("signer.remote_key: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("signer.remote_cert, signer.remote_key: %s and %s are no pair of certificate and key",
			cfg.RemoteCert, cfg.RemoteKey)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted, Certificates: []tls.Certificate{pair}}, nil
}

// Address implements [Signer].
func (r *remote) Address() chain.Address { return r.address }

// transactionArg is a transaction as both dialects take it. Web3Signer passes over the chain id and signs for its own,
// which is why it is compared.
type transactionArg struct {
	From    chain.Address  `json:"from"`
	To      chain.Address  `json:"to"`
	Gas     hexutil.Uint64 `json:"gas"`
	Tip     hexutil.Uint64 `json:"maxPriorityFeePerGas"`
	Cap     hexutil.Uint64 `json:"maxFeePerGas"`
	Value   hexutil.Uint64 `json:"value"`
	Nonce   hexutil.Uint64 `json:"nonce"`
	Data    hexutil.Bytes  `json:"data"`
	ChainID hexutil.Uint64 `json:"chainId"`
}

// Sign implements [Signer]. After an error the transaction may have been signed all the same, and nobody here knows the
// bytes.
func (r *remote) Sign(ctx context.Context, tx Tx) (raw []byte, hash chain.Hash, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("no answer within %s",
		r.timeout))
	defer cancel()
	if raw, hash, err = r.sign(ctx, tx); err != nil {
		return nil, chain.Hash{}, fmt.Errorf("asking the signer at %s to sign nonce %d of %s: %w", r.line.url, tx.Nonce,
			r.address, err)
	}
	return raw, hash, nil
}

func (r *remote) sign(ctx context.Context, tx Tx) ([]byte, chain.Hash, error) {
	result, err := r.line.call(ctx, r.dialect.method, transactionArg{
		From: r.address, To: tx.To, Gas: hexutil.Uint64(tx.Gas), Tip: hexutil.Uint64(tx.Tip),
		Cap: hexutil.Uint64(tx.Cap), Value: hexutil.Uint64(tx.Value),
		Nonce: hexutil.Uint64(tx.Nonce), Data: tx.Data, ChainID: hexutil.Uint64(tx.ChainID),
	})
	if err != nil {
		return nil, chain.Hash{}, err
	}
	raw, err := r.dialect.raw(result)
	if err != nil {
		return nil, chain.Hash{}, errors.New("its answer holds no transaction (is signer.remote_dialect right?)")
	}
	hash, err := tx.verify(r.address, raw)
	return raw, hash, err
}

// Format prints the address for every verb.
func (r *remote) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(r.address.Hex())) }

// MarshalText is what encoders print.
func (r *remote) MarshalText() ([]byte, error) { return r.address.MarshalText() }
