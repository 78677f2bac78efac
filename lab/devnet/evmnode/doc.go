// Package evmnode is an EVM chain in the process that behaves, as far as a client can see, like a node of BNB Smart
// Chain: sub-second blocks whose seconds repeat, milliseconds in the mix digest, base fee zero, tags `safe` and
// `finalized` two blocks behind the head, forks, and the error texts of the real transaction pool. It is a development
// chain: it has one block producer and no peers.
//
// The state machine, the transaction pool and the JSON-RPC codec are go-ethereum's own. Ours are the block producer
// (builder.go), the rules a header must follow (engine.go), the `eth` methods (api_*.go), forks (fork.go), and faults
// for tests of clients (fault.go).
//
// # Time
//
// A header carries the wall clock at the moment the block was built: Time has whole seconds and repeats, MixDigest has
// the milliseconds within that second. The milliseconds of a chain never go backwards, not even when the wall clock
// does. Blocks of a fork carry the time of the block they replace, since that is when the other producer would have
// sealed them.
//
// # Rules
//
// London, as on BSC before its Shanghai-style upgrades: contracts must be compiled for `london` or older (no PUSH0, no
// transient storage). Every state is kept, in memory, for ever: forks and calls reach back to the genesis block, and
// memory grows with the chain. The payment lane of BEP-703 is off until Config.PaymentLane, Node.SetPaymentLane or
// devnet_paymentLane {percent} switches it on.
//
// # Forks
//
// Replay builds a longer branch on an ancestor, as a peer would deliver it: transactions of the old branch land in
// other blocks and in another order, the rest returns to the pool, subscribers hear only of the new tip, and the old
// blocks stay readable by hash. Drop is what anvil_reorg does: same height, empty blocks, dropped transactions vanish,
// every new block is announced as a head, and the old blocks cannot be read any more. The tags `safe` and `finalized`
// follow the head. Node.Reorg replaces blocks whatever was said of them; ReorgUnfinalized, and devnet_reorg unless told
// otherwise, hold finality first, as a chain whose votes fail.
package evmnode
