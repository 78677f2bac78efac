package compose

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

// tierFiles are the compose files of three keepers on one machine.
var tierFiles = []string{"docker-compose.yml", "deploy/compose/tiers/chain.yml"}

// tierEnv is what the keeper of a tier is started with: the demo's env file, and its own after it.
func tierEnv(t *testing.T, tier int) map[string]string {
	t.Helper()
	env := envFile(t, "demo.env")
	maps.Copy(env, envFile(t, fmt.Sprintf("tiers/keeper%d.env", tier)))
	return env
}

// threeKeepers loads the projects keeper1, keeper2 and keeper3.
func threeKeepers(t *testing.T) (projects []*types.Project) {
	t.Helper()
	for tier := 1; tier <= 3; tier++ {
		p, err := loadAs(t, fmt.Sprintf("keeper%d", tier), tierFiles, tierEnv(t, tier), "monitoring")
		if err != nil {
			t.Fatal(err)
		}
		projects = append(projects, p)
	}
	return projects
}

// TIER-2: three projects beside each other have the network of the chain in common, and no other network, volume, port
// or name.
func TestThreeProjectsShareTheChainAlone(t *testing.T) {
	owners := map[string]string{} // of what only one project may have
	claim := func(project, what string) {
		if other, taken := owners[what]; taken && other != project {
			t.Errorf("%s and %s both have %s", other, project, what)
		}
		owners[what] = project
	}
	var chains []string
	for _, p := range threeKeepers(t) {
		if slices.Contains(p.ServiceNames(), "devnet") {
			t.Errorf("%s has a chain of its own", p.Name)
		}
		for key, network := range p.Networks {
			if key == "chain" && bool(network.External) {
				chains = append(chains, network.Name)
				continue
			}
			claim(p.Name, "the network "+network.Name)
		}
		for _, volume := range p.Volumes {
			claim(p.Name, "the volume "+volume.Name)
		}
		for name, s := range p.Services {
			for _, port := range s.Ports {
				claim(p.Name, "the port "+port.Published)
			}
			if s.ContainerName != "" {
				t.Errorf("%s: %s has the fixed name %s", p.Name, name, s.ContainerName)
			}
			_, reaches := s.Networks["chain"]
			if needs := name == "scanner" || name == "sender" || name == "console"; reaches != needs {
				t.Errorf("%s: %s is on the chain's network: %v", p.Name, name, reaches)
			}
		}
	}
	if len(slices.Compact(chains)) != 1 || len(chains) != 3 {
		t.Errorf("the networks of the chain are %v", chains)
	}
}

// The chain's own project is the same files and nothing but the devnet, on the network the keepers join.
func TestChainOfThreeProjects(t *testing.T) {
	p, err := loadAs(t, "keeper-chain", tierFiles, envFile(t, "demo.env"), "demo")
	if err != nil {
		t.Fatal(err)
	}
	if p, err = p.WithSelectedServices([]string{"devnet"}); err != nil {
		t.Fatal(err)
	}
	if names := p.ServiceNames(); !slices.Equal(names, []string{"devnet"}) {
		t.Errorf("up devnet starts %v", names)
	}
	if _, joins := p.Services["devnet"].Networks["chain"]; !joins || !bool(p.Networks["chain"].External) {
		t.Errorf("the devnet's networks are %v", p.Services["devnet"].Networks)
	}
}

var (
	priorityInForce = regexp.MustCompile(`(?m)^priority = (\d)$`)
	peerInForce     = regexp.MustCompile(`(?m)^\[\[tier\.peers\]\]\ntier = (\d)\nsigners = \[(.*)\]$`)
	addressPattern  = regexp.MustCompile(`0x[0-9a-fA-F]{40}`)
)

// TIER-15: each of the three is its own tier, sends from its own signers, and knows the others by theirs.
func TestThreeProjectsAreThreeTiers(t *testing.T) {
	signers := map[string]string{} // by tier
	for tier := 1; tier <= 3; tier++ {
		signers[fmt.Sprint(tier)] = tierEnv(t, tier)["KEEPER_SIGNERS"]
	}
	for i, p := range threeKeepers(t) {
		tier := fmt.Sprint(i + 1)
		config := settingsInForce(t, p, "sender")
		if found := priorityInForce.FindStringSubmatch(config); found == nil || found[1] != tier ||
			!strings.Contains(config, "[tier]\nenabled = true\n") {
			t.Errorf("%s: the sender's tier in force is %v", p.Name, found)
		}
		known := map[string]string{}
		for _, peer := range peerInForce.FindAllStringSubmatch(config, -1) {
			known[peer[1]] = strings.Join(addressPattern.FindAllString(peer[2], -1), ",")
		}
		others := maps.Clone(signers)
		delete(others, tier)
		if !maps.Equal(known, others) {
			t.Errorf("%s: knows the peers %v, they are %v", p.Name, known, others)
		}
		planner := *p.Services["planner"].Environment["PERPKEEPER_KEEPER_SIGNERS"]
		if planner != signers[tier] {
			t.Errorf("%s: the planner routes to %s, the signers are %s", p.Name, planner, signers[tier])
		}
	}
}
