package doctor

import (
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// How long a balance has to last at the pace of the last day.
const (
	leastHours = 6
	someHours  = 48
)

// leastBalance is what a dozen executions cost where nothing is known of the pace: 0.01 of the chain's coin, in wei.
var leastBalance = chain.Pow10(16)

// mainnets are the chains whose coins cost money.
var mainnets = []uint64{1, 56, 42161, 43114}

var signerChecks = []check{
	{"signer-keys", "signers", false, func(f *Facts, found report) {
		switch {
		case !f.sends():
		case !f.KeysAsked:
			found(Failure, "", "no key is configured",
				"name the folder of the keystores in signer.keystore_dir, or a remote signer in signer.remote_url")
		case f.KeysError != nil:
			found(Failure, "", f.KeysError.Error(),
				"keystores and passwords must be readable by the container's group (mode 0640), and fit each other")
		}
	}},
	{"signer-key", "signers", false, func(f *Facts, found report) {
		if !f.sends() || !f.KeysAsked || f.KeysError != nil {
			return
		}
		for _, s := range f.Settings.Signers {
			if !slices.Contains(f.Keys, s) {
				found(Failure, s.Hex(), "jobs are routed to it, and there is no key of it",
					"put its keystore into the folder, or take it out of the list of signers")
			}
		}
		if len(f.Settings.Signers) == 0 {
			found(Failure, "", "no signer is listed: no job has anybody to go to",
				"list the signers' addresses (KEEPER_SIGNERS)")
		}
	}},
	{"signer-binding", "signers", false, wrongBindings},
	{"signer-unlisted", "signers", false, func(f *Facts, found report) {
		for _, k := range f.Keys {
			if len(f.Settings.Signers) > 0 && !slices.Contains(f.Settings.Signers, k) {
				found(Warning, k.Hex(), "there is a key of it, and no job is routed to it",
					"list it among the signers (KEEPER_SIGNERS), or take its key away")
			}
		}
	}},
	// Two keepers with one signer spend each other's nonces.
	{"signer-peer", "failover", false, func(f *Facts, found report) {
		own := slices.Concat(f.Settings.Signers, f.Keys)
		for _, p := range f.Settings.Tier.Peers {
			for _, s := range p.Signers {
				if slices.Contains(own, s) && f.sends() {
					found(Failure, s.Hex(), fmt.Sprintf("it is a signer of this keeper and of tier %d", p.Tier),
						"a signer belongs to one keeper: give each its own, and correct tier.peers")
				}
			}
		}
	}},
	{"signer-development", "signers", false, func(f *Facts, found report) {
		if f.Development && slices.Contains(mainnets, f.Settings.ChainID) {
			found(Failure, "", fmt.Sprintf("raw keys stand in the configuration (signer.dev), and chain %d is no test "+
				"chain", f.Settings.ChainID), "use keystores or a remote signer")
		}
	}},
	{"signer-role", "signers", false, eachSigner(func(f *Facts, s Signer, found report) {
		for _, role := range f.Settings.rolesNeeded(s.Address) {
			if s.Roles != nil && !s.Roles[role] {
				found(Failure, s.Address.Hex(), "the exchange's RoleStore has not granted it "+role, "have the venue "+
					"grant it; or, of ADL_KEEPER and FROZEN_ORDER_KEEPER, set ADL_ROLE or FROZEN_ROLE to false")
			}
		}
	})},
	{"signer-balance", "signers", false, eachSigner(func(f *Facts, s Signer, found report) {
		if f.sends() && s.Balance != nil && s.Balance.Less(leastBalance) {
			found(warnIf(!s.Balance.IsZero()), s.Address.Hex(), fmt.Sprintf("it has %s wei to pay gas with", s.Balance),
				"send it some of the chain's coin; it goes on by itself")
		}
	})},
	{"signer-burn", "signers", true, eachSigner(func(_ *Facts, s Signer, found report) {
		if s.Balance == nil || s.Spent.IsZero() || s.Balance.Less(leastBalance) {
			return // a balance this low is found without knowing the pace
		}
		hours := s.Balance.Mul(chain.U64(24)).Div(s.Spent)
		if hours.Less(chain.U64(someHours)) {
			found(warnIf(!hours.Less(chain.U64(leastHours))), s.Address.Hex(),
				fmt.Sprintf("its balance lasts %s h at the pace of the last day", hours),
				"send it some of the chain's coin")
		}
	})},
	{"signer-known", "signers", true, eachSigner(func(f *Facts, s Signer, found report) {
		if f.sends() && f.stateAnswers() && !s.Known {
			found(Failure, s.Address.Hex(), "no sender has ever taken it up on this database",
				"see why the sender does not start: docker compose logs sender")
		}
	})},
	{"signer-paused", "signers", true, eachSigner(func(_ *Facts, s Signer, found report) {
		if s.Known && s.Paused != "" {
			found(Failure, s.Address.Hex(), "it is paused: "+s.Paused,
				"mend the cause, then keeperctl signer resume "+s.Address.Hex())
		}
	})},
	{"signer-lease", "signers", true, eachSigner(func(_ *Facts, s Signer, found report) {
		if s.LeaseAhead {
			found(Failure, s.Address.Hex(), "its lease was written ahead of the database's clock, which has gone "+
				"back: if its holder is gone, nobody gets it for that long",
				"ask again in a few seconds; if this stays: keeperctl lease break "+s.Address.Hex())
		}
		if s.Known && !s.Attended {
			found(Failure, s.Address.Hex(), "no sender has its lease: nothing is sent for it",
				"see whether a sender with its key runs and is ready; after a crash a lease ends within its ttl")
		}
	})},
	// The chain knows transactions of the signer that this database never gave a number to.
	{"signer-nonce", "signers", true, eachSigner(func(_ *Facts, s Signer, found report) {
		fresh := s.NextNonce == 0 && s.InFlight == 0
		if s.Known && !fresh && s.Latest != nil && *s.Latest > s.NextNonce {
			found(Failure, s.Address.Hex(), fmt.Sprintf("the chain's next number is %d, the database's %d: somebody "+
				"else sends with its key, or the database went back in time", *s.Latest, s.NextNonce),
				"find out who, then keeperctl signer resync "+s.Address.Hex())
		}
	})},
	{"signer-gaps", "signers", true, eachSigner(func(_ *Facts, s Signer, found report) {
		if len(s.Gaps) > 0 {
			found(Failure, s.Address.Hex(), fmt.Sprintf("nothing is signed with the numbers %v, and what is above "+
				"waits for them", s.Gaps), "keeperctl signer gaps says what becomes of each")
		}
	})},
}

// sends reports whether this keeper has signers at all.
func (f *Facts) sends() bool { return !f.Settings.Monitor && !f.Settings.Shadow }

// eachSigner judges every signer.
func eachSigner(judge func(*Facts, Signer, report)) func(*Facts, report) {
	return func(f *Facts, found report) {
		for _, s := range f.Signers {
			judge(f, s, found)
		}
	}
}

// wrongBindings finds what the planner refuses to start with.
func wrongBindings(f *Facts, found report) {
	s, bound, refused := f.Settings, map[chain.Address][]job.Lane{}, false
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
			refused = true
			found(Failure, b.Signer.Hex(), wrong, "correct planner.bindings")
		}
		bound[b.Signer] = append(bound[b.Signer], b.Lanes...)
	}
	if len(s.Bindings) == 0 || len(s.Signers) == 0 || refused {
		return
	}
	if unserved := job.NewSigners(s.Signers, bound).Unserved(); len(unserved) > 0 {
		found(Failure, string(unserved[0]), "no signer takes this lane: its jobs are never sent",
			"bind a signer to it, or leave one unbound")
	}
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
	if takes(job.OrderLane) && s.Frozen {
		roles = append(roles, "FROZEN_ORDER_KEEPER")
	}
	return roles
}
