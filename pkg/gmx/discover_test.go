package gmx

import (
	"context"
	"maps"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// fakeVenue answers by contract and by the first four bytes of a call; every function it knows and does not answer
// reverts for want of a role.
type fakeVenue map[chain.Address]map[[4]byte][]byte

func (v fakeVenue) Ask(_ context.Context, to chain.Address, data []byte) ([]byte, bool, error) {
	output, known := v[to][[4]byte(data[:4])]
	switch {
	case !known:
		return nil, false, nil
	case output == nil:
		return []byte{0xa3, 0x5b, 0x15, 0x0b}, false, nil
	}
	return output, true, nil
}

func answer(a chain.Address) []byte { h := a.Hash(); return h[:] }

func members(all ...chain.Address) (list []byte) {
	list = appendNumber(appendNumber(nil, 32), len(all))
	for _, a := range all {
		list = append(list, answer(a)...)
	}
	return list
}

// venue is a deployment whose router names two handlers, and whose list of controllers has these, the two that no
// router names, and an old one.
func venue() (v fakeVenue, at map[string]chain.Address) {
	at = map[string]chain.Address{}
	for i, name := range []string{
		"router", "store", "emitter", "roles", "oracle", "order", "deposit", "liquidation", "adl", "old order",
		"old shift", "shift", "vault",
	} {
		at[name] = chain.Address{byte(i + 1)}
	}
	module := func(more map[[4]byte][]byte) map[[4]byte][]byte {
		m := map[[4]byte][]byte{getDataStore: answer(at["store"]), getEventEmitter: answer(at["emitter"]),
			getRoleStore: answer(at["roles"]), getOracle: answer(at["oracle"])}
		maps.Copy(m, more)
		return m
	}
	executes := func(kinds ...job.Kind) map[[4]byte][]byte {
		m := map[[4]byte][]byte{}
		for _, kind := range kinds {
			m[[4]byte(executions[kind].encode(job.Job{Kind: kind}, SetPrices{}))] = nil
		}
		return module(m)
	}
	all := members(at["old order"], at["order"], at["vault"], at["liquidation"], at["adl"], at["shift"],
		at["old shift"], at["deposit"])
	return fakeVenue{
		at["router"]: {getRoleStore: answer(at["roles"]), selector("orderHandler()"): answer(at["order"]),
			selector("depositHandler()"): answer(at["deposit"])},
		at["store"]:       {getRoleStore: answer(at["roles"]), getUint: answer(chain.Address{})},
		at["roles"]:       {getMemberCount: appendNumber(nil, 8), getMembers: all},
		at["order"]:       executes(job.Order),
		at["old order"]:   executes(job.Order),
		at["deposit"]:     executes(job.Deposit),
		at["liquidation"]: executes(job.Liquidation),
		at["adl"]:         executes(job.Adl, job.AdlState),
		at["shift"]:       executes(job.Shift),
		at["old shift"]:   executes(job.Shift),
		at["vault"]:       {getRoleStore: answer(at["roles"])},
	}, at
}

// What the router names is taken before others that execute the same; of two that nobody names none is.
func TestDiscoverFromARouter(t *testing.T) {
	v, at := venue()
	found, err := Discover(t.Context(), v, at["router"])
	want := Config{
		EventEmitter: at["emitter"], DataStore: at["store"], Oracle: at["oracle"], OrderHandler: at["order"],
		DepositHandler:     at["deposit"],
		LiquidationHandler: at["liquidation"], AdlHandler: at["adl"],
	}
	if err != nil || found.Config != want {
		t.Errorf("found %+v, %v, want %+v", found.Config, err, want)
	}
	if s := found.Several; len(s) != 1 || len(s["shift_handler"]) != 2 {
		t.Errorf("several: %v", s)
	}
}

func TestDiscoverFromTheDataStore(t *testing.T) {
	v, at := venue()
	found, err := Discover(t.Context(), v, at["store"])
	if err != nil || found.DataStore != at["store"] || found.EventEmitter != at["emitter"] ||
		found.DepositHandler != at["deposit"] || !found.OrderHandler.IsZero() {
		t.Errorf("found %+v, %v", found.Config, err)
	}
	if len(found.Several["order_handler"]) != 2 {
		t.Errorf("several: %v", found.Several)
	}
	if _, err := Discover(t.Context(), v, chain.Address{0xee}); err == nil {
		t.Error("an address with nothing is taken for a venue")
	}
}

// A venue has more controllers than the words of one answer have bytes.
func TestDiscoverAmongManyControllers(t *testing.T) {
	v, at := venue()
	var all []chain.Address
	for i := range 60 {
		all = append(all, chain.Address{0xff, byte(i)})
	}
	all = append(all, at["liquidation"], at["adl"])
	v[at["roles"]] = map[[4]byte][]byte{getMemberCount: appendNumber(nil, len(all)), getMembers: members(all...)}
	found, err := Discover(t.Context(), v, at["store"])
	if err != nil || found.LiquidationHandler != at["liquidation"] || found.AdlHandler != at["adl"] {
		t.Errorf("found %+v, %v", found.Config, err)
	}
}
