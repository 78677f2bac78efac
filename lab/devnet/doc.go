// Package devnet is a whole exchange on a chain of its own, in one process: a node that behaves like one of BNB Smart
// Chain (evmnode), the exchange's contracts (contracts, exchange), its price feed (pricefeed), and accounts that trade
// (traders). It is what the demo and the tests of the services run against.
//
// Everything is public and nothing is kept: the keys are the well-known development keys of Mnemonic, the state is in
// memory, or in a folder that no later run reads, and the devnet methods that cause forks, stalls, faults and price shocks are open to whoever reaches the
// port. It must not hold anything of worth, and listens on the loopback interface unless told otherwise.
//
// Start runs one inside a program; cmd/devnet is the process, and also the command that disturbs a running one.
package devnet
