package perp

import (
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
)

// ErrContradiction is what [Apply] ends in when an event cannot follow the rows that are there: a log was lost, or one
// was applied twice. Nothing can be guessed from there: the caller stops and reports it.
var ErrContradiction = errors.New("event contradicts the state: a log is missing or was applied twice")

// Apply folds one event into s. It is pure and deterministic: equal rows and an equal event leave equal rows. It writes
// only rows that e.Touches names and reads only those and, at any key, rows of markets, their measures and oracle
// sources: these tables are few and small, and a State has them all at hand. It writes nothing when it returns an
// error.
//
// Events must arrive in the chain's order. A fold that starts at the deployment meets every row before it is changed.
// One that starts later does not, so an event about an unknown row is no error; what it leaves behind:
//
//   - An order or request created before the start stays unknown until it ends: its terms are in no later event. Its
//     update, end or freezing changes nothing, and asking for it answers "no row", which everyone reads as "nothing to
//     do here".
//   - A position opened before the start becomes known at its next increase or decrease, from the absolute values of
//     that event. Its pendingImpactAmount then lacks what it had before; a full close mends that.
//   - Market measures and parameters are absolute, hence right from their first event on; absent means zero.
//
// An event that a known row rules out (a second creation, an end after the end, sizes that do not add up) is
// [ErrContradiction].
func Apply(s State, e Event) error {
	var err error
	overflow := chain.Checked(func() { err = e.apply(s) })
	if err = errors.Join(overflow, err); err != nil {
		return fmt.Errorf("applying %T: %w", e, err)
	}
	return nil
}

// Some events say a whole row.

func (e MarketListed) apply(s State) error    { return put(s, e.Market) }
func (e OracleSourceSet) apply(s State) error { return put(s, e.Source) }
func (e ClosedInsolvent) apply(s State) error { return put(s, e.Debt) }
func (e TransactionSeen) apply(s State) error { return put(s, e.Transaction) }
func (e PositionSettled) apply(s State) error { return put(s, e.Settlement) }
func (e KeeperPaid) apply(s State) error      { return put(s, e.Fee) }

func put(s State, row Row) error {
	s.Put(row)
	return nil
}

// get returns the row of a key as its own type, and whether there is one.
func get[R Row](s State, key RowKey) (row R, known bool) {
	row, known = s.Get(key).(R)
	return row, known
}

func contradiction(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrContradiction)...)
}

// apply skips the zero market: swap orders make the exchange report funding and borrowing of market 0x0,
// which is none.
func (e MarketValued) apply(s State) error {
	for _, v := range e.Values {
		if v.Scope.IsZero() {
			continue
		}
		if v.Measure == FundingFactorPerSecond {
			version, err := e.version(s)
			if err != nil {
				return err
			}
			if saved, known := foldedFunding(s, v, version); known {
				s.Put(saved)
			}
		}
		s.Put(v)
	}
	return nil
}

// apply counts what the flag says, unless the event shows that the flag has changed without one: it begins where the
// other measure stands, and not where this one does.
// version is that of the handler that spoke. It is never guessed: the scanner says it before or with the block.
func (e MarketValued) version(s State) (Version, error) {
	if e.Handler.IsZero() {
		return V22b, nil
	}
	version, known := versionOf(s, e.Handler)
	if !known {
		return version, contradiction("nothing says which version of the contracts %s is of, which reports funding",
			e.Handler)
	}
	return version, nil
}

func (e VirtualPositionsMoved) apply(s State) error {
	v := MarketValue{Measure: VirtualInventoryForPositions, Scope: e.TokenID, Value: e.Value, Stamp: e.Stamp}
	other := v
	other.Measure = VirtualInventoryForPositionsInTokens
	if inTokens, _ := get[Parameter](s, RowKey{Parameters, balanceInTokensKey}); inTokens.Value != (chain.Hash{}) {
		v, other = other, v
	}
	before := e.Value.Sub(e.Delta)
	flagged, known := get[MarketValue](s, v.RowKey())
	if others, _ := get[MarketValue](s, other.RowKey()); known && flagged.Value != before && others.Value == before {
		v = other
	}
	s.Put(v)
	return nil
}

// apply keeps the later witness; see [ParameterSource].
func (e ParameterSet) apply(s State) error {
	old, known := get[Parameter](s, e.Parameter.RowKey())
	if known && e.Parameter.Source == FromCall {
		stale := e.Parameter.Stamp.Block < old.Stamp.Block
		sameBlockAsEvent := e.Parameter.Stamp.Block == old.Stamp.Block && old.Source != FromCall
		if stale || sameBlockAsEvent {
			return nil
		}
	}
	s.Put(e.Parameter)
	return nil
}

// apply takes a word from the chain where the fold has another value. What is absent is zero; a row that is
// right keeps its source and stamp.
func (e ParameterAudited) apply(s State) error {
	old, _ := get[Parameter](s, e.Parameter.RowKey())
	if old.Value == e.Parameter.Value {
		return nil
	}
	return ParameterSet{e.Parameter}.apply(s)
}
