package devnet

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// The derived accounts are those that other tools print for the same mnemonic.
func TestAccountsAreTheWellKnownOnes(t *testing.T) {
	accounts, err := Accounts(0, 10)
	if err != nil {
		t.Fatal(err)
	}
	for index, want := range map[int]string{
		0: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
		1: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
		2: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
		9: "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720",
	} {
		if accounts[index].Address != common.HexToAddress(want) {
			t.Errorf("account %d is %s, want %s", index, accounts[index].Address, want)
		}
	}
	if key := hexutil.Encode(
		crypto.FromECDSA(
			accounts[0].Key)); key != "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80" {
		t.Errorf("key of account 0 is %s", key)
	}
	later, err := Accounts(9, 1)
	if err != nil || later[0].Address != accounts[9].Address || later[0].Index != 9 {
		t.Errorf("account 9 on its own: %+v, %v", later, err)
	}
}
