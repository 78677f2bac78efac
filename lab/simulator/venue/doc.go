// Package venue is an exchange for simulations: what keepers can tell of GMX v2.2, and nothing else. It executes the
// calls that pkg/gmx encodes against rows of derived state, refuses them with the contracts' own error data, and writes
// the logs that end jobs as the contracts write them.
//
// # As on the original contracts
//
// Who is refused with what: EmptyOrder for orders and positions that are gone, the Empty and NotFound errors of
// requests, triggers that are not reached, healthy positions with their numbers, reports that are too old, too young or
// missing, a role that was taken away. Market orders whose price is not acceptable are cancelled, others frozen, in a
// transaction that succeeds. The gas of winners and losers of orders and liquidations is that measured on the original
// contracts.
//
// # Simpler
//
// Positions pay no fees and have no price impact, and open interest is not kept: what remains of a position is its
// collateral and its profit. Deleveraging is not there. Requests move no tokens; their gas is that of orders,
// unmeasured. Of an execution's logs only those are written that end something, and the fees that a decrease is joined
// with. Keys depend on the order in which they were asked for and not on the chain, so that a request has the same key
// on every branch; on a real chain it need not.
package venue
