// Package contracts carries the compiled contracts of the devnet's exchange.
//
// The sources are in src, one idea per file. They are the project's own: a small perpetual exchange that speaks the
// interface of the GMX v2.2 line (EventEmitter logs, DataStore keys, handler selectors, error names), so that a keeper
// cannot tell the difference, but without the price impact of positions, borrowing and referrals. The
// artifacts are compiled from them by build.mjs with a pinned compiler and are committed; "node build.mjs --check"
// shows that they match.
package contracts

import (
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

//go:embed artifacts/*.json
var artifacts embed.FS

// Name of a contract, as in the sources.
type Name string

// The contracts with an artifact. Errors is a library that cannot be deployed: its ABI lists every custom error.
const (
	AdlHandler           Name = "AdlHandler"
	CallbackCounter      Name = "CallbackCounter"
	Config               Name = "Config"
	DataStore            Name = "DataStore"
	DepositHandler       Name = "DepositHandler"
	DevnetOracleProvider Name = "DevnetOracleProvider"
	Errors               Name = "Errors"
	EventEmitter         Name = "EventEmitter"
	ExchangeRouter       Name = "ExchangeRouter"
	GlvDepositHandler    Name = "GlvDepositHandler"
	GlvFactory           Name = "GlvFactory"
	GlvShiftHandler      Name = "GlvShiftHandler"
	GlvToken             Name = "GlvToken"
	GlvWithdrawalHandler Name = "GlvWithdrawalHandler"
	GasBurner            Name = "GasBurner"
	LiquidationHandler   Name = "LiquidationHandler"
	MarketFactory        Name = "MarketFactory"
	MarketToken          Name = "MarketToken"
	MintableToken        Name = "MintableToken"
	Oracle               Name = "Oracle"
	OrderBook            Name = "OrderBook"
	OrderHandler         Name = "OrderHandler"
	PoolBook             Name = "PoolBook"
	PositionBook         Name = "PositionBook"
	Reader               Name = "Reader"
	RequestVault         Name = "RequestVault"
	RoleStore            Name = "RoleStore"
	Router               Name = "Router"
	ShiftHandler         Name = "ShiftHandler"
	StaticOracleProvider Name = "StaticOracleProvider"
	SwapHandler          Name = "SwapHandler"
	WithdrawalHandler    Name = "WithdrawalHandler"
)

// Version of the GMX v2.2 line that the exchange speaks.
type Version string

// The versions. Contracts that are the same in both have one artifact.
const (
	V22B Version = "v2.2b"
	V22C Version = "v2.2c"
)

// Contract is one compiled contract. It is shared: do not change it.
type Contract struct {
	ABI abi.ABI
	// Libraries are those that the contract calls, sorted: they have to be deployed before its creation code can be
	// made.
	Libraries []Name
	// bytecode is the creation code in hexadecimal, without constructor arguments, with placeholders for the addresses
	// of libraries.
	bytecode     string
	placeholders map[Name]string
}

var parsed = sync.OnceValues(parseAll)

// Of returns a contract as it is in a version. It panics as Get does.
func Of(v Version, name Name) *Contract {
	if v == V22B {
		if all, err := parsed(); err == nil && all[name.of(v)] != nil {
			return all[name.of(v)]
		}
	}
	return Get(name)
}

// of is the name of the artifact for what a version has otherwise.
func (n Name) of(v Version) Name { return n + "." + Name(v) }

// Get returns a contract as it is in v2.2c. It panics on an unknown name or a broken artifact, which only a change of
// this package can cause and its tests rule out.
func Get(name Name) *Contract {
	all, err := parsed()
	if err != nil {
		panic(err)
	}
	c, ok := all[name]
	if !ok {
		panic(fmt.Sprintf("no artifact of contract %q", name))
	}
	return c
}

// CreationCode returns the data of the transaction that deploys the contract with these constructor arguments. Every
// one of its libraries needs an address.
func (c *Contract) CreationCode(libraries map[Name]common.Address, args ...any) ([]byte, error) {
	packed, err := c.ABI.Pack("", args...)
	if err != nil {
		return nil, fmt.Errorf("packing constructor arguments: %w", err)
	}
	linked := c.bytecode
	for name, placeholder := range c.placeholders {
		address, known := libraries[name]
		if !known {
			return nil, fmt.Errorf("library %s has no address", name)
		}
		linked = strings.ReplaceAll(linked, placeholder, hex.EncodeToString(address[:]))
	}
	code, err := hexutil.Decode(linked)
	if err != nil {
		return nil, fmt.Errorf("creation code: %w", err)
	}
	return append(code, packed...), nil
}

// RevertReason names the custom error in the data of a revert, with its arguments. It reports false for data that is
// not one of the exchange's errors.
func RevertReason(data []byte) (name string, args []any, ok bool) {
	if len(data) < 4 {
		return "", nil, false
	}
	known, err := Get(Errors).ABI.ErrorByID([4]byte(data))
	if err != nil {
		return "", nil, false
	}
	args, err = known.Inputs.Unpack(data[4:])
	if err != nil {
		return "", nil, false
	}
	return known.Name, args, true
}

func parseAll() (map[Name]*Contract, error) {
	entries, err := artifacts.ReadDir("artifacts")
	if err != nil {
		return nil, fmt.Errorf("listing artifacts: %w", err)
	}
	all := make(map[Name]*Contract, len(entries))
	for _, entry := range entries {
		name := Name(strings.TrimSuffix(entry.Name(), ".json"))
		c, err := parse(name)
		if err != nil {
			return nil, fmt.Errorf("artifact of %s: %w", name, err)
		}
		all[name] = c
	}
	return all, nil
}

func parse(name Name) (*Contract, error) {
	text, err := artifacts.ReadFile("artifacts/" + string(name) + ".json")
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	var artifact struct {
		Contract  Name            `json:"contract"`
		ABI       abi.ABI         `json:"abi"`
		Libraries map[Name]string `json:"libraries"`
		Bytecode  string          `json:"bytecode"`
	}
	if err := json.Unmarshal(text, &artifact); err != nil {
		return nil, fmt.Errorf("parsing: %w", err)
	}
	if artifact.Contract != name && artifact.Contract.of(V22B) != name {
		return nil, fmt.Errorf("is of contract %q", artifact.Contract)
	}
	return &Contract{
		ABI: artifact.ABI, Libraries: slices.Sorted(maps.Keys(artifact.Libraries)), bytecode: artifact.Bytecode,
		placeholders: artifact.Libraries,
	}, nil
}
