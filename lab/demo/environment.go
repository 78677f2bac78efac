package demo

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// writeConfig puts down what has no place in an environment: tables.
func (k *Keeper) writeConfig() (path string, err error) {
	tiers, err := k.tiers()
	if err != nil {
		return "", err
	}
	path = filepath.Join(k.dir, "keeper.toml")
	_, further := k.stack.adapted()
	return path, os.WriteFile(path, []byte(tiers+further), 0o600)
}

// writeEnvironment puts down the keeper's configuration for a shell, so that keeperctl can be tried on it while the
// demo runs.
func (k *Keeper) writeEnvironment() error {
	var b strings.Builder
	b.WriteString("# This keeper, for keeperctl: set -a; . FILE; set +a\n")
	for _, entry := range slices.Sorted(slices.Values(k.env)) {
		name, value, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&b, "%s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return os.WriteFile(k.EnvFile(), []byte(b.String()), 0o600)
}

// EnvFile is where the keeper's configuration is put down for a shell.
func (k *Keeper) EnvFile() string { return filepath.Join(k.dir, "keeper.env") }

// tiers is the [tier] section: this keeper's place, and by which signers the others are known. A keeper alone has none.
func (k *Keeper) tiers() (string, error) {
	if len(k.stack.Keepers) == 1 || k.isShadow() {
		return "", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n[tier]\nenabled = true\npriority = %d\ntiers = %d\nwindow = %q\n", k.Tier, len(k.stack.Keepers),
		k.stack.settings.Window)
	for _, peer := range k.stack.Keepers {
		if peer == k {
			continue
		}
		signers, err := peer.signers()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n[[tier.peers]]\ntier = %d\nsigners = [\"%s\"]\n", peer.Tier,
			strings.Join(addressesOf(signers), `", "`))
	}
	return b.String(), nil
}

// signers are the keeper's own share of the devnet's keeper accounts. A shadow simulates as the Master's.
func (k *Keeper) signers() ([]Account, error) {
	if k.isShadow() {
		return k.stack.Keepers[0].signers()
	}
	each := k.stack.settings.Signers
	all, err := k.stack.Devnet.keepers(each * len(k.stack.Keepers))
	if err != nil {
		return nil, err
	}
	return all[each*(k.Tier-1) : each*k.Tier], nil
}

func addressesOf(accounts []Account) []string {
	addresses := make([]string, 0, len(accounts))
	for _, a := range accounts {
		addresses = append(addresses, a.Address.Hex())
	}
	return addresses
}

// environment is the configuration of the whole keeper, the same for each of its processes: each takes the sections it
// knows.
func (k *Keeper) environment() ([]string, error) {
	own, err := k.signers()
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, account := range own {
		keys = append(keys, account.Key)
	}
	devnet := k.stack.Devnet
	env := map[string]string{
		"KEEPER_CHAIN_ID": strconv.FormatUint(devnet.ChainID, 10),
		"CHAIN_URLS":      devnet.RPC + "," + devnet.WS,
		"KAFKA_BROKERS":   strings.Join(k.Brokers, ","),
		"POSTGRES_URL":    k.Postgres,

		"VENUE_DATA_STORE": devnet.Contracts["dataStore"].Hex(),

		"LIQUIDATION_FIRE_RATIO": fireRatio,
		"SCANNER_START_BLOCK":    strconv.FormatUint(devnet.Block, 10),
		"SCANNER_PRICE_URL":      devnet.Feed,
		"PLANNER_ADL_ROLE":       "true",
		"KEEPER_SIGNERS":         strings.Join(addressesOf(own), ","),
		"SENDER_FEE_BUDGET_DAY":  "1000", // its traders ask for more in an hour than others in a day
		"SIGNER_DEV":             "true",
		"SIGNER_DEV_KEYS":        strings.Join(keys, ","),
	}
	if k.isShadow() {
		env["SENDER_MODE"] = "shadow"
		delete(env, "SIGNER_DEV")
		delete(env, "SIGNER_DEV_KEYS")
	}
	changed, _ := k.stack.adapted()
	maps.Copy(env, changed)
	maps.Copy(env, k.Also)
	maps.DeleteFunc(env, func(_, value string) bool { return value == "" })
	list := make([]string, 0, len(env))
	for key, value := range env {
		list = append(list, "PERPKEEPER_"+key+"="+value)
	}
	return list, nil
}
