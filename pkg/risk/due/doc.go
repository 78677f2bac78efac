// Package due decides which positions, orders and requests of a venue can be executed at a moment, and gives the reason
// for each that cannot: the rules by which they become jobs. It is pure: a [Moment] is state at one block and the
// newest price reports, and the same moment gives the same decisions in the planner, in the tool that explains them,
// and in a simulation.
//
// # Guaranteed
//
// A decision that is due holds at its moment by the venue's own rules as far as they are known here; one that is not
// says why in words for an operator. Job ids are functions of state (see package job), so that deciding twice is one
// job.
//
// # Not guaranteed
//
// That executing succeeds: the price of execution, callbacks and what a decrease pays out are only known to the
// contract. The sender simulates before it sends.
package due
