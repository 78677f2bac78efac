package doctor

import (
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// How long a balance has to last at the pace of the last day.
const (
	leastHours = 6
	someHours  = 48
)

// leastBalance is what a dozen executions cost where nothing is known of the pace: 0.01 of the chain's coin, in wei.
var leastBalance = perp.Pow10(16)

// mainnets are the chains whose coins cost money.
var mainnets = []uint64{1, 56, 42161, 43114}

func signerChecks() []check {
	return []check{
		{"signer-keys", "signers", false, unreadableKeys},
		{"signer-key", "signers", false, withoutKey},
		{"signer-binding", "signers", false, wrongBindings},
		{"signer-unlisted", "signers", false, unlisted},
		{"signer-peer", "failover", false, peersSigner},
		{"signer-development", "signers", false, developmentKeys},
		{"signer-role", "signers", false, withoutRole},
		{"signer-role-setting", "signers", false, rolesDiffer},
		{"signer-balance", "signers", false, poor},
		{"signer-burn", "signers", true, burning},
		{"signer-watched", "signers", false, unwatched},
		{"signer-known", "signer-paused", true, unknown},
		{"signer-paused", "signer-paused", true, paused},
		{"signer-lease", "signers", true, unattended},
		{"signer-nonce", "signer-paused", true, aheadOfUs},
		{"signer-gaps", "signers", true, withGaps},
	}
}

// sends tells whether this keeper has signers at all.
func (f *Facts) sends() bool { return !f.Settings.Monitor && !f.Settings.Shadow }

func unreadableKeys(f *Facts) []fault {
	switch {
	case !f.sends():
		return nil
	case !f.KeysAsked:
		return []fault{{Failure, "", "no key is configured",
			"name the folder of the keystores in signer.keystore_dir, or a remote signer in signer.remote_url"}}
	case f.KeysError != nil:
		return []fault{{Failure, "", f.KeysError.Error(),
			"keystores and passwords must be readable by the container's group (mode 0640), and fit each other"}}
	}
	return nil
}

func withoutKey(f *Facts) (found []fault) {
	if !f.sends() || !f.KeysAsked || f.KeysError != nil {
		return nil
	}
	for _, s := range f.Settings.Signers {
		if !slices.Contains(f.Keys, s) {
			found = append(found, fault{Failure, s.Hex(), "jobs are routed to it, and there is no key of it",
				"put its keystore into the folder, or take it out of the list of signers"})
		}
	}
	if len(f.Settings.Signers) == 0 {
		found = append(found, fault{Failure, "", "no signer is listed: no job has anybody to go to",
			"list the signers' addresses (KEEPER_SIGNERS)"})
	}
	return found
}

func unlisted(f *Facts) (found []fault) {
	for _, k := range f.Keys {
		if len(f.Settings.Signers) > 0 && !slices.Contains(f.Settings.Signers, k) {
			found = append(found, fault{Warning, k.Hex(), "there is a key of it, and no job is routed to it",
				"list it among the signers (KEEPER_SIGNERS), or take its key away"})
		}
	}
	return found
}

// peersSigner: two keepers with one signer spend each other's nonces.
func peersSigner(f *Facts) (found []fault) {
	own := slices.Concat(f.Settings.Signers, f.Keys)
	for _, p := range f.Settings.Tier.Peers {
		for _, s := range p.Signers {
			if slices.Contains(own, s) && f.sends() {
				found = append(found, fault{Failure, s.Hex(),
					fmt.Sprintf("it is a signer of this keeper and of tier %d",
						p.Tier), "a signer belongs to one keeper: give each its own, and correct tier.peers"})
			}
		}
	}
	return found
}

func developmentKeys(f *Facts) []fault {
	if !f.Development || !slices.Contains(mainnets, f.Settings.ChainID) {
		return nil
	}
	return []fault{{Failure, "", fmt.Sprintf("raw keys stand in the configuration (signer.dev), and chain %d is no "+
		"test chain", f.Settings.ChainID), "use keystores or a remote signer"}}
}

// wrongBindings finds what the planner refuses to start with.
func wrongBindings(f *Facts) (found []fault) {
	s := f.Settings
	if len(s.Bindings) == 0 {
		return nil
	}
	bound := map[chain.Address][]job.Lane{}
	for _, b := range s.Bindings {
		wrong := ""
		switch {
		case !slices.Contains(s.Signers, b.Signer):
			wrong = "it is bound to lanes, and is no signer of this keeper"
		case len(b.Lanes) == 0:
			wrong = "it is bound to no lane"
		case bound[b.Signer] != nil:
			wrong = "it is bound twice"
		}
		for _, lane := range b.Lanes {
			if !slices.Contains(job.Lanes(), lane) {
				wrong = fmt.Sprintf("it is bound to %q, and the lanes are %v", lane, job.Lanes())
			}
		}
		if wrong != "" {
			found = append(found, fault{Failure, b.Signer.Hex(), wrong, "correct planner.bindings"})
		}
		bound[b.Signer] = append(bound[b.Signer], b.Lanes...)
	}
	for _, lane := range job.NewSigners(s.Signers, bound).Unserved() {
		if len(s.Signers) > 0 && len(found) == 0 {
			found = append(found, fault{Failure, string(lane), "no signer takes this lane: its jobs are never sent",
				"bind a signer to it, or leave one unbound"})
		}
	}
	return found
}

// rolesNeeded are the roles without which a signer's transactions revert: those of the lanes that it takes.
func (s Settings) rolesNeeded(signer chain.Address) (roles []string) {
	takes := func(lane job.Lane) bool {
		at := slices.IndexFunc(s.Bindings, func(b Binding) bool { return b.Signer == signer })
		return at < 0 || slices.Contains(s.Bindings[at].Lanes, lane)
	}
	if takes(job.OrderLane) || takes(job.MaintenanceLane) {
		roles = append(roles, "ORDER_KEEPER")
	}
	if takes(job.LiquidationLane) {
		roles = append(roles, "LIQUIDATION_KEEPER")
		if s.Adl {
			roles = append(roles, "ADL_KEEPER")
		}
	}
	if takes(job.OrderLane) && (s.Frozen || s.SenderFrozen) {
		roles = append(roles, "FROZEN_ORDER_KEEPER")
	}
	return roles
}

func withoutRole(f *Facts) (found []fault) {
	for _, s := range f.Signers {
		for _, role := range f.Settings.rolesNeeded(s.Address) {
			if s.Roles != nil && !s.Roles[role] {
				found = append(found, fault{Failure, s.Address.Hex(),
					"the exchange's RoleStore has not granted it " + role,
					"have the venue grant it; or, of ADL_KEEPER and FROZEN_ORDER_KEEPER, set ADL_ROLE or " +
						"FROZEN_ROLE to false"})
			}
		}
	}
	return found
}

func rolesDiffer(f *Facts) []fault {
	if f.Settings.Monitor || f.Settings.Frozen == f.Settings.SenderFrozen {
		return nil
	}
	return []fault{{Failure, "", fmt.Sprintf("planner.frozen_role is %t and sender.frozen_role %t", f.Settings.Frozen,
		f.Settings.SenderFrozen), "set both alike (FROZEN_ROLE in the region's env file)"}}
}

func poor(f *Facts) (found []fault) {
	for _, s := range f.Signers {
		if !f.sends() || s.Balance == nil || !s.Balance.Less(leastBalance) {
			continue
		}
		how := Warning
		if s.Balance.IsZero() {
			how = Failure
		}
		found = append(found, fault{how, s.Address.Hex(), fmt.Sprintf("it has %s wei to pay gas with", s.Balance),
			"send it some of the chain's coin; it goes on by itself"})
	}
	return found
}

func burning(f *Facts) (found []fault) {
	for _, s := range f.Signers {
		if s.Balance == nil || s.Spent.IsZero() || s.Balance.Less(leastBalance) {
			continue // a balance this low is found without knowing the pace
		}
		day := perp.U64(24)
		hours := s.Balance.Mul(day).Div(s.Spent)
		if !hours.Less(perp.U64(someHours)) {
			continue
		}
		how := Warning
		if hours.Less(perp.U64(leastHours)) {
			how = Failure
		}
		found = append(found, fault{how, s.Address.Hex(),
			fmt.Sprintf("its balance lasts %s h at the pace of the last day", hours),
			"send it some of the chain's coin"})
	}
	return found
}

func unwatched(f *Facts) (found []fault) {
	for _, s := range f.Settings.Signers {
		if f.sends() && !slices.Contains(f.Settings.Watched, s) {
			found = append(found, fault{Warning, s.Hex(), "the scanner does not record its transactions: those that " +
				"revert leave no trace in the state", "list it in scanner.signers (KEEPER_SIGNERS does)"})
		}
	}
	return found
}

func unknown(f *Facts) (found []fault) {
	for _, s := range f.Signers {
		if f.sends() && f.stateAnswers() && !s.Known {
			found = append(found, fault{Failure, s.Address.Hex(), "no sender has ever taken it up on this database",
				"see why the sender does not start: docker compose logs sender"})
		}
	}
	return found
}

func paused(f *Facts) (found []fault) {
	for _, s := range f.Signers {
		if s.Known && s.Paused != "" {
			found = append(found, fault{Failure, s.Address.Hex(), "it is paused: " + s.Paused,
				"mend the cause, then keeperctl signer resume " + s.Address.Hex()})
		}
	}
	return found
}

func unattended(f *Facts) (found []fault) {
	for _, s := range f.Signers {
		if s.LeaseAhead {
			found = append(found, fault{Failure, s.Address.Hex(), "its lease was written ahead of the database's " +
				"clock, which has gone back: if its holder is gone, nobody gets it for that long",
				"ask again in a few seconds; if this stays: keeperctl lease break " + s.Address.Hex()})
		}
		if s.Known && !s.Attended {
			found = append(found, fault{Failure, s.Address.Hex(), "no sender has its lease: nothing is sent for it",
				"see whether a sender with its key runs and is ready; after a crash a lease ends within its ttl"})
		}
	}
	return found
}

// aheadOfUs: the chain knows transactions of the signer that this database never gave a number to.
func aheadOfUs(f *Facts) (found []fault) {
	for _, s := range f.Signers {
		fresh := s.NextNonce == 0 && s.InFlight == 0
		if s.Known && !fresh && s.Latest != nil && *s.Latest > s.NextNonce {
			found = append(found, fault{Failure, s.Address.Hex(), fmt.Sprintf("the chain's next number is %d, the "+
				"database's %d: somebody else sends with its key, or the database went back in time", *s.Latest,
				s.NextNonce),
				"find out who, then keeperctl signer resync " + s.Address.Hex()})
		}
	}
	return found
}

func withGaps(f *Facts) (found []fault) {
	for _, s := range f.Signers {
		if len(s.Gaps) > 0 {
			found = append(found, fault{Failure, s.Address.Hex(),
				fmt.Sprintf("nothing is signed with the numbers %v, and "+
					"what is above waits for them", s.Gaps), "keeperctl signer gaps says what becomes of each"})
		}
	}
	return found
}
