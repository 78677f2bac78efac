package sim

import (
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/perp"
	"perpkeeper/test/sim/fakechain"
	"perpkeeper/test/sim/ledger"
)

var errKafka = errors.New("dial kafka: connection refused")

func (k *keeper) has(ill Ill) bool { return k.ills[ill].count > 0 }

// befall begins a fault.
func (k *keeper) befall(f Fault) {
	a := k.ills[f.What]
	if a.count++; a.count == 1 {
		a.since = k.stage.agenda.now
	}
	a.by = time.Duration(f.By)
	k.ills[f.What] = a
	switch f.What { //nolint:exhaustive // the others are looked at when they matter
	case Down:
		k.life++
		k.planner, k.sender = nil, nil
	case NoGas:
		k.stage.chain.Fund(k.key.Account, perp.Uint{})
	case NoRole:
		k.stage.chain.Revoke(k.key.Account, true)
	}
	k.suffer()
}

// recover ends a fault.
func (k *keeper) recover(f Fault) {
	a := k.ills[f.What]
	away := k.stage.agenda.now - a.since
	if a.count--; a.count == 0 {
		a.by = 0
	}
	k.ills[f.What] = a
	if a.count > 0 {
		return
	}
	switch f.What { //nolint:exhaustive // the others are looked at when they matter
	case Down, RPCDown, KafkaDown, PgDown, Behind, StateBehind:
		k.late = k.stage.agenda.now + away/catchUp
	case NoGas:
		k.stage.chain.Fund(k.key.Account, fortune)
	case NoRole:
		k.stage.chain.Revoke(k.key.Account, false)
	}
	k.suffer()
	if f.What == Down {
		k.start()
		return
	}
	k.event(0, k.hear)
	k.event(k.lags.topic, k.publish)
	k.event(k.lags.job, k.intake)
}

// suffer tells the keeper's view of the chain what is wrong now.
func (k *keeper) suffer() {
	head := k.headLag()
	k.endpoint.Suffer(fakechain.Faults{Down: k.has(RPCDown), Lag: head, Swallow: k.has(Swallow), Late: k.ills[Late].by})
	k.state.Suffer(fakechain.Ails{Down: k.has(PgDown) || k.has(PgLost), Lag: k.stateLag()})
}

// headLag is how long a block takes to the keeper.
func (k *keeper) headLag() time.Duration { return k.lags.head + k.behind(Behind) }

// stateLag is how far behind its endpoint the keeper's state is.
func (k *keeper) stateLag() time.Duration {
	lag := k.lags.topic + k.lags.state + max(k.behind(StateBehind), k.behind(KafkaDown), k.behind(PgDown))
	if left := k.late - k.stage.agenda.now; left > 0 {
		lag += left * catchUp
	}
	return lag
}

// behind is how far behind a fault has brought the keeper: what it sees stands still until it is as far behind as the
// fault says.
func (k *keeper) behind(ill Ill) time.Duration {
	a := k.ills[ill]
	if a.count == 0 {
		return 0
	}
	passed := k.stage.agenda.now - a.since
	if a.by == 0 {
		return passed
	}
	return min(a.by, passed)
}

// disturbance is what is wrong with the keeper's database.
func (k *keeper) disturbance(string) ledger.Fault {
	switch {
	case k.has(PgDown):
		return ledger.Down
	case k.has(PgLost):
		return ledger.Mute
	}
	return ledger.Healthy
}

// String tells the fault as a line of a transcript does.
func (f Fault) String() string {
	whom := "the chain"
	if !ills[f.What].chain {
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
