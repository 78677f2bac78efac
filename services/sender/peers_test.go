package sender

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/signer"
	"strings"
	"testing"
)

func TestSignersAreNoPeers(t *testing.T) {
	keys, err := signer.Open(signer.Config{Dev: true, DevKeys: []secret.String{secret.New(strings.Repeat("11", 32))}})
	if err != nil {
		t.Fatal(err)
	}
	peers := tier.Config{Peers: []tier.Peer{{Tier: 2, Signers: []chain.Address{{0xbb}, keys[0].Address()}}}}
	if err := notPeers(peers, keys); err == nil ||
		!strings.Contains(err.Error(), "tier.peers[0]: signer "+keys[0].Address().Hex()) {
		t.Errorf("own signers among the peers: %v", err)
	}
	peers.Peers[0].Signers = peers.Peers[0].Signers[:1]
	if err := notPeers(peers, keys); err != nil {
		t.Errorf("others' signers: %v", err)
	}
}
