package doctor

import (
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/tier"
)

var (
	ownSigner, peerOne, peerTwo = chain.Address{1}, chain.Address{2}, chain.Address{3}
	eth, usdc                   = chain.Address{0x11}, chain.Address{0x12}
	provider                    = chain.Address{0x99}

	nowMs = uint64(1_800_000_000_000)
)

func block(n uint64) chain.BlockRef {
	return chain.BlockRef{Number: n, Hash: chain.Hash{byte(n)}, TimeMs: nowMs - (1000-n)*450}
}

// healthy is a keeper without a fault: the second of three, with three endpoints and two sources.
func healthy() *Facts {
	head, balance, latest := block(1000), chain.Pow10(18), uint64(40)
	f := &Facts{
		Hosts: 2, KeysAsked: true, Keys: []chain.Address{ownSigner},
		Settings: Settings{
			ChainID: 56, StartBlock: 500, Signers: []chain.Address{ownSigner},
			MaxLag:        5 * time.Second,
			LogPartitions: 4, Adl: true, Tier: tier.DefaultConfig(),
			Price: price.Gates{MaxAge: time.Minute, MaxAhead: 2 * time.Second, MaxSpread: 500, MaxDeviation: 200},
		},
		Venue: &Venue{
			DataStore: chain.Address{0xd0}, Roles: chain.Address{0xf0}, Markets: 1, MarketsAtStart: -1,
			Tokens:    []Token{{eth, 18}, {usdc, -1}},
			Providers: map[chain.Address]bool{provider: true},
		},
		Signers: []Signer{{Address: ownSigner, Balance: &balance, Known: true, Attended: true, NextNonce: 42,
			InFlight: 2,
			Latest:   &latest, Spent: chain.Pow10(17),
			Roles: map[string]bool{"ORDER_KEEPER": true, "LIQUIDATION_KEEPER": true, "ADL_KEEPER": true}}},
		Topics: &Topics{All: []Topic{{Name: "perp.56.log.v1", Partitions: 4, Want: 4, Copies: 3, InSync: 3}},
			Lag: []int64{0, 3, 2, 1}, Unsent: map[string]int64{"owner": 0},
			Reports: map[chain.Address]uint64{eth: nowMs, usdc: nowMs}},
		State: &State{Started: true, Block: 999, TimeMs: nowMs - 450, Partitions: 4, Seen: Seen{
			Requests: 50_000, Throttled: 10, Executed: map[int]float64{0: 1, 1: 400, 2: 30, 3: 1},
			Ages: map[int][]AgeCount{1: {{time.Second, 350}, {30 * time.Second, 398}, {60 * time.Second, 400}},
				2: {{time.Second, 4}, {30 * time.Second, 6}, {60 * time.Second, 30}}, 3: {{60 * time.Second, 1}}},
		}},
		Machine: Machine{Now: time.UnixMilli(int64(nowMs + 700)), Operator: true,
			Disks: []Disk{{Path: "/", Free: 100 << 30, Total: 200 << 30}}},
	}
	f.Settings.Tier.Enabled, f.Settings.Tier.Priority = true, 2
	f.Settings.Tier.Peers = []tier.Peer{{Tier: 1, Signers: []chain.Address{peerOne}},
		{Tier: 3, Signers: []chain.Address{peerTwo}}}
	for _, name := range []string{"https://one", "https://two", "https://three"} {
		f.Endpoints = append(f.Endpoints, Endpoint{Name: name, Head: head, Final: block(998), SettledNumber: 990,
			Settled: chain.Hash{9}, OldState: true})
	}
	for _, name := range []string{"streams", "gmx"} {
		f.Sources = append(f.Sources, Source{Name: name, Decimals: map[chain.Address]uint8{eth: 18, usdc: 6},
			Reports: map[chain.Address]Report{
				eth:  {provider, chain.U64(2_000_000), chain.U64(2_000_100), nowMs},
				usdc: {provider, chain.U64(1_000_000), chain.U64(1_000_000), nowMs},
			}})
	}
	return f
}
