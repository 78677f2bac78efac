package simulator

import (
	"fmt"
	"time"

	"perpkeeper/lab/simulator/fakechain"
	"perpkeeper/pkg/chain"
)

func (k *keeper) has(kind FaultKind) bool { return k.faults[kind].count > 0 }

// beginFault begins a fault.
func (k *keeper) beginFault(f Fault) {
	a := k.faults[f.What]
	if a.count++; a.count == 1 {
		a.since = k.sim.events.now
	}
	a.by = time.Duration(f.By)
	k.faults[f.What] = a
	switch f.What { //nolint:exhaustive // the others are looked up when they matter
	case Down:
		k.life++
		k.planner, k.sender = nil, nil
		k.ledger.Gone(k.key.Account)
	case NoGas:
		k.sim.chain.Fund(k.key.Account, chain.Uint{})
	case NoRole:
		k.sim.chain.Revoke(k.key.Account, true)
	}
	k.applyFaults()
}

// endFault ends a fault.
func (k *keeper) endFault(f Fault) {
	a := k.faults[f.What]
	away := k.sim.events.now - a.since
	if a.count--; a.count == 0 {
		a.by = 0
	}
	k.faults[f.What] = a
	if a.count > 0 {
		return
	}
	switch f.What { //nolint:exhaustive // the others are looked up when they matter
	case Down, RPCDown, Behind, StateBehind:
		k.late = k.sim.events.now + away/catchUp
	case NoGas:
		k.sim.chain.Fund(k.key.Account, initialBalance)
	case NoRole:
		k.sim.chain.Revoke(k.key.Account, false)
	}
	k.applyFaults()
	if f.What == Down {
		k.start()
		return
	}
	k.event(0, k.readHead)
	k.event(k.lags.topic, k.publish)
	k.event(k.lags.job, k.readJobs)
}

// applyFaults sets the faults of the keeper's endpoint and state as of now.
func (k *keeper) applyFaults() {
	head := k.headLag()
	k.endpoint.SetFaults(fakechain.Faults{Down: k.has(RPCDown), Lag: head, Swallow: k.has(Swallow),
		Late: k.faults[Late].by})
	k.state.SetLag(k.stateLag())
}

// headLag is how long a block takes to the keeper.
func (k *keeper) headLag() time.Duration { return k.lags.head + k.behind(Behind) }

// stateLag is how far behind its endpoint the keeper's state is.
func (k *keeper) stateLag() time.Duration {
	lag := k.lags.topic + k.lags.state + k.behind(StateBehind)
	if left := k.late - k.sim.events.now; left > 0 {
		lag += left * catchUp
	}
	return lag
}

// behind is how far behind a fault has brought the keeper: what it sees stands still until it is as far behind as the
// fault says.
func (k *keeper) behind(kind FaultKind) time.Duration {
	a := k.faults[kind]
	if a.count == 0 {
		return 0
	}
	passed := k.sim.events.now - a.since
	if a.by == 0 {
		return passed
	}
	return min(a.by, passed)
}

// String is the fault as in a transcript.
func (f Fault) String() string {
	whom := "the chain"
	if !faultKinds[f.What].chain {
		whom = "everybody"
		if f.Keeper != 0 {
			whom = tierName(f.Keeper)
		}
	}
	text := fmt.Sprintf("%s: %s", whom, f.What)
	if f.By != 0 {
		text += " " + time.Duration(f.By).String()
	}
	if f.Depth != 0 {
		text += fmt.Sprintf(" %d", f.Depth)
	}
	return text
}
