package keeperctl

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"perpkeeper/pkg/operator/text"
	"perpkeeper/services/keeperctl/doctor"
)

// doctorCommand looks for faults. What is gathered is in the files beside this one, what is a fault in package doctor.
func doctorCommand(cmd *cobra.Command) runner {
	pre := cmd.Flags().Bool("pre", false, "before anything runs: ask configuration, endpoints, contracts, keys and "+
		"price sources alone")
	return func(ctx context.Context, s *session, _ []string) error {
		s.log = zerolog.Nop() // what is wrong is a finding, and said once
		facts := s.facts(ctx, *pre)
		found, areas := doctor.Examine(facts)
		return s.printFindings(*pre, facts.CallGas(), found, areas)
	}
}

// facts asks everybody at the same time. What cannot be reached is a fact as well.
func (s *session) facts(ctx context.Context, pre bool) *doctor.Facts {
	ctx, cancel := s.within(ctx)
	defer cancel()
	f := &doctor.Facts{Pre: pre, Development: s.Signer.Dev, Settings: s.settings()}
	var wait sync.WaitGroup
	wait.Go(func() { s.openKeys(f) })
	if !pre {
		wait.Go(func() { f.State = s.lookAtState(ctx) })
		wait.Go(func() { f.Topics = s.lookAtTopics(ctx) })
	}
	endpoints := s.dialEach(ctx)
	defer endpoints.close()
	endpoints.ask(ctx, s)
	wait.Wait()
	s.lookAtContracts(ctx, f, endpoints)
	if !pre {
		s.lookAtLedger(ctx, f)
	}
	s.machine(ctx, f)
	s.askSources(ctx, f, endpoints.node)
	s.lookAtProviders(ctx, f, endpoints)
	if !pre {
		s.lookAtReports(ctx, f)
	}
	// The heads last: they are the clock that ages are judged by.
	endpoints.heads(ctx)
	f.Machine.Now = time.Now()
	f.Endpoints, f.Hosts = endpoints.facts()
	return f
}

// settings are what the processes are configured with.
func (s *session) settings() doctor.Settings {
	return doctor.Settings{
		Bindings: s.Planner.Bindings,
		ChainID:  s.Keeper.ChainID, StartBlock: s.Scanner.StartBlock, Monitor: s.Tier.Monitor,
		Signers: s.Keeper.Signers, Shadow: s.Sender.Mode == shadowMode,
		Adl: s.Planner.AdlRole, Frozen: s.Keeper.FrozenRole,
		Tier: s.Tier, MaxLag: s.Chain.MaxLag,
		LogPartitions: s.Keeper.LogPartitions,
		Price:         s.Scanner.Price.Gates,
	}
}

// printFindings prints the findings by area, those of a kind together, and what was looked at without one.
func (s *session) printFindings(pre bool, callGas uint64, found []doctor.Finding, areas []doctor.Summary) error {
	answer := struct {
		CallGas  uint64           `json:"callGas"` // of a block; 0 = nobody could be asked
		ChainID  uint64           `json:"chainId"`
		Pre      bool             `json:"pre"`
		Well     bool             `json:"well"`
		Findings []doctor.Finding `json:"findings"`
		Areas    []doctor.Summary `json:"areas"`
	}{callGas, s.Keeper.ChainID, pre, len(found) == 0, append([]doctor.Finding{}, found...), areas}
	var lines, fine strings.Builder
	fmt.Fprintf(&lines, "keeper of chain %d, %s, at %s\n", s.Keeper.ChainID, s.place(), text.Moment(time.Now()))
	if callGas > 0 {
		fmt.Fprintf(&lines, "calls may use %d gas of a block\n", callGas)
	}
	checks := 0
	for _, a := range areas {
		checks += a.Checks
		switch {
		case a.Findings > 0:
			fmt.Fprintf(&lines, "\n%s\n", a.Area)
		case a.Checks > 0:
			fmt.Fprintf(&fine, "ok  %-10s %d checks\n", a.Area, a.Checks)
		}
		for _, x := range found {
			if x.Area == a.Area {
				lines.WriteString(faultText(x))
			}
		}
	}
	fmt.Fprintf(&lines, "\n%s", fine.String())
	if err := s.out.either(answer, lines.String()); err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%d checks have found faults: %d", checks, len(found))
}

// faultText is a finding for people: what was seen, and below it what to do.
func faultText(x doctor.Finding) string {
	mark := map[doctor.Severity]string{doctor.Failure: "!!", doctor.Warning: " !"}[x.Severity]
	about := x.About
	if about != "" {
		about += ": "
	}
	return fmt.Sprintf("%s  %-20s %s\n    %-20s %s (%s)\n", mark, x.Check, inLine(about+x.Seen), "",
		inLine(x.Fix), x.Runbook)
}
