package compose

import (
	"strings"
	"testing"

	"perpkeeper/lab/devnet"
	"perpkeeper/test/rig"
)

// The demo profile names addresses before the devnet has deployed anything: they must be the ones it deploys to.
func TestDemoNamesTheDevnet(t *testing.T) {
	d := rig.NewExchange(t, devnet.DefaultConfig())
	env, contracts := envFile(t, "demo.env"), d.Deployment().Contracts
	for key, want := range map[string]string{
		"DATA_STORE": contracts.DataStore.Hex(),
	} {
		if env[key] != want {
			t.Errorf("%s=%s, the devnet has %s", key, env[key], want)
		}
	}
	granted := map[string]bool{}
	for _, k := range d.Deployment().Keepers {
		granted[k.Address.Hex()] = true
	}
	for _, env := range []map[string]string{env, tierEnv(t, 1), tierEnv(t, 2), tierEnv(t, 3)} {
		for signer := range strings.SplitSeq(env["KEEPER_SIGNERS"], ",") {
			if !granted[signer] {
				t.Errorf("the signer %s has no role on the devnet", signer)
			}
		}
	}
}
