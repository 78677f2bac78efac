package sender

import (
	"sync"
	"time"

	"perpkeeper/pkg/risk/liquidation"
	"perpkeeper/pkg/txmgr/txm"
)

// Volatile is what a sender may do while prices move abruptly (LIQ-14): many positions are liquidatable at once then,
// and everybody wants to be in the next block. What is below the ordinary limit changes nothing.
type Volatile struct {
	// Window: over how long the movement of prices is looked at; as the planner's liquidation.volatility_window.
	Window time.Duration `toml:"-"`
	// MaxInFlight: most transactions of one signer in flight then; the limit rises towards it while the chain takes
	// them.
	MaxInFlight int `toml:"-"`
	// MaxLiquidations: most liquidations in flight then, over all senders of the keeper; the limit rises towards it
	// while the chain takes them.
	MaxLiquidations int `toml:"-"`
}

// defaultVolatile is of what BSC takes. A block of BSC holds some 20 liquidations, and it takes two to three
// blocks until what is sent is known to be mined.
func defaultVolatile() Volatile {
	return Volatile{Window: time.Minute, MaxInFlight: 64, MaxLiquidations: 100}
}

// limits are what holds a sender back, at this moment.
type limits struct {
	settings Settings
	mode     func() liquidation.Mode // how volatile the markets are at this moment

	mu     sync.Mutex
	window txm.Window // what the chain takes of what is sent, over all signers of the process
}

// Fee is what may be paid now: twice the ordinary price for a liquidation while prices move abruptly. Caps
// per job and day stay: they are what a keeper can afford.
func (l *limits) Fee() txm.Policy {
	p := l.settings.Fee
	if l.mode() > liquidation.Normal {
		p.Liquidation.Cap *= 2
	}
	return p
}

// InFlight are how many may be pending now. While the markets are volatile the limits follow what the chain takes; what
// is pending when they calm down is seen through.
func (l *limits) InFlight() txm.Limits {
	n, most := l.settings.inFlight(), l.settings.Volatile
	if l.mode() > liquidation.Normal {
		l.mu.Lock()
		defer l.mu.Unlock()
		n.Signer = l.window.Of(n.Signer, most.MaxInFlight)
		n.Liquidations = l.window.Of(n.Liquidations, most.MaxLiquidations)
	}
	return n
}

// Observe takes in what a block shows of what was sent.
func (l *limits) Observe(t txm.Taken) {
	volatile := l.mode() > liquidation.Normal
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window = l.window.Observe(t); !volatile {
		l.window = txm.Window{}
	}
}
