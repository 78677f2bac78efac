package sender

import (
	"fmt"
	"slices"

	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/signer"
)

// notPeers refuses signers that are another keeper's by the configuration.
func notPeers(cfg tier.Config, keys []signer.Signer) error {
	for i, p := range cfg.Peers {
		for _, key := range keys {
			if slices.Contains(p.Signers, key.Address()) {
				return fmt.Errorf("tier.peers[%d]: signer %s is one of this keeper's own (a signer belongs to one "+
					"keeper: remove it here or there)", i, key.Address())
			}
		}
	}
	return nil
}
