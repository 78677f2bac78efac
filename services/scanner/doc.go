// Package scanner copies what the exchange says on chain to Kafka: in order, nothing left out, nothing twice in effect, reorgs included (PIPE-2).
//
// # What is on the log topic
//
// Every partition gets every block: one atomic batch of the block's records that belong to the partition, closed by a BLOCK_END that counts and
// digests them. Within a batch stand first the PARAMs, then the LOGs in the order of their index, then the TXs in the order of theirs. A LOG goes to
// the partition of its routing key; PARAM and TX go to partition 0. Between batches stand, each alone, EPOCH, REORG and FINALIZED.
//
// PARAMs are words of the DataStore that no event carries, read at the block they stand in: the topic's first, the head when this scanner has caught
// up with it, and a head every now and then if a word has changed. A TX stands beside every transaction with one of our logs, and beside every
// transaction of a configured signer.
//
// # How it goes on
//
// The topic is the checkpoint; there is no other. A scanner claims the topic by an epoch: it writes EPOCH with the next number to partition 0, reads
// back that it was first, and writes it to the others. What each partition then holds up to its EPOCH is final: readers drop what an earlier
// scanner still writes behind it. From there the scanner follows the chain by parent hash. A partition whose newest block has left the chain gets one
// REORG to the newest block that has not, then the new branch. Partitions may stand at different blocks; each gets what it lacks.
//
// Starting anew, losing the broker in the middle of a batch, and being killed are therefore one case.
//
// # Several scanners
//
// A scanner that starts claims the topic at once: starting it is the operator's word. One that finds itself replaced stops writing and stands by; it
// claims the topic again when the topic has stayed behind the chain for a while (takeover_after).
//
// # Completeness
//
// Verified blocks are proven: either the header's bloom rules out any log of ours, or the block's receipts hash to the header's receipts root and
// the logs are taken from them. Blocks are published unverified where the node serves no receipts; scanner_unverified_blocks_total counts them.
//
// # Not guaranteed
//
//   - History is copied block by block, one after the other, with a batch for each. There is no faster way for old blocks.
//   - A reorg deeper than the memory of a partition (1000 blocks) stops the scanner: its readers could not undo it.
//   - An event unknown to pkg/gmx stops the scanner: it cannot be routed, and skipping it would hide it.
//   - The price topic may repeat a report after a restart or a lost reply; readers know a report by token and time.
package scanner
