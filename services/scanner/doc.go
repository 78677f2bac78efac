// Package scanner copies the exchange's events to Kafka: in order, nothing left out, nothing twice in effect,
// reorgs included (PIPE-2).
//
// # What is on the log topic
//
// Every partition gets every block of the head: one atomic batch of the block's records that belong to the partition,
// closed by a BLOCK_END that counts and digests them. Within a block stand first the PARAMs, then the AUDITs, then the
// LOGs in the order of their index, then the TXs in the order of theirs. PARAMs, and logs that set parameters, go to
// every partition; an AUDIT to that of its market, every other LOG to that of its routing key, and TX to partition 0.
// Between batches stand, each alone, EPOCH, REORG, CORRECTION, FINALIZED, PROVEN and HALT.
//
// A block whose records for a partition are larger than a batch may be (kafka.max_bytes) goes out in several batches,
// of which all but the last end in PART. Nothing of it counts before its BLOCK_END.
//
// History, that is what is final and far below the head, goes out in ranges: one batch for each partition with the
// records of many blocks, one block after the other, closed by a RANGE_END. Ranges are read side by side, written in
// order, cut so that each is wholly new or wholly held for every partition, and end at or below the finalized block;
// from there on it is block by block.
//
// PARAMs are words of the DataStore that no event carries. The configured ones are read at the topic's first block and
// stand in it. All others are read by audits, at an earlier final block (adr 0011), and stand in the next new block of
// every partition. An AUDIT in a later one means that every word that rules read for a market was compared. A TX stands
// beside every transaction with one of our logs, and beside every transaction of a configured signer.
//
// # How it goes on
//
// The topic is the checkpoint; there is no other. A scanner claims the topic by an epoch: it writes EPOCH with the next
// number to partition 0, reads back that it was first, and writes it to the others. What each partition then holds up
// to its EPOCH is final: readers drop what an earlier scanner still writes behind it. From there the scanner follows
// the chain by parent hash. A partition whose newest block has left the chain gets one REORG to the newest block that
// has not, then the new branch. Partitions may stand at different blocks; each gets what it lacks.
//
// Starting anew, losing the broker in the middle of a batch, and being killed are therefore one case.
//
// So is a topic that was deleted and made anew beneath a tenure: a batch that comes to stand below the one before, a
// sequence that is refused, or the end of the topic below what was read ends the tenure, and the topic is claimed anew
// under a higher epoch. What the tenure before has written into it by then stands under no claim of that topic, and
// counts for nothing, for the scanner and for statevm (wire.Claim).
//
// # Several scanners
//
// A scanner that starts claims the topic at once: starting it is the operator's word. One that finds itself replaced
// stops writing and stands by; it claims the topic again when the topic has stayed behind the chain for a while
// (takeover_after).
//
// # Completeness
//
// Verified blocks are proven: either the header's bloom rules out any log of ours and no signer has a transaction in
// the block, or the block's receipts hash to the header's receipts root, and logs and TXs are taken from them; the
// block's hash was recomputed. What no node can prove is published all the same, logs from the log index and TXs as
// nodes tell them, and not called verified; but a block with logs that are neither proven nor routable is not
// published. What was is then proven in the background, by what stands on the topic:
// scanner_unverified_blocks goes down when it is right, and when it is wrong. Then the block and everything above it is
// taken back by a CORRECTION in every partition and published again under a higher attempt, below the finalized block
// too; one too deep for that is counted by scanner_corrections_too_deep_total. A block's identity is its number, hash
// and attempt; the blocks above a correction carry its attempt, later ones included. Ranges carry none: a tenure that
// finds nothing above one begins at 0. A block that turns out to be as it was published gets a PROVEN in each
// partition that has it unverified.
//
// In ranges, blocks that hold transactions of signers alone are found by the signers' nonces: ends and finds are what
// two hosts say, and the blocks' bodies are checked against them. Where that cannot be had every block is read.
//
// Ranges cannot be corrected, so they wait for proof. Only where nodes refuse receipts outright are they published
// unverified, and then only what readers could no longer undo: the rest, and what stands on a block that can still be
// corrected, goes out block by block.
//
// # Finality
//
// Final is what two endpoints of different hosts call final (evm.Client.Finalized); the maximum is the scanner's own. A
// chain that leaves a final block, as two hosts have it, halts the topic; while only one has, the scanner waits. With
// one host there is one word, which the log, /readyz and evm_hosts say. HALT goes to every partition, and after it
// nothing but the EPOCHs of scanners that start. The operator lifts it by scanner.accept_reorg_to, which writes a REORG
// that readers let pass.
//
// # Not guaranteed
//
//   - Headers of history are linked to each other by recomputed hashes, up to the finalized block. Who sealed them is
//     not checked: a node alone could make up a chain.
//   - A reorg deeper than readers can undo (1000 blocks, and never into a range) stops the scanner before a REORG is
//     written, once two hosts, where there are two, have left the branch. A wrong block that deep is not corrected, but
//     counted and logged; one that was right is still published as proven, while the process lives.
//   - A single record that is larger than a batch may be stops publishing until the operator raises kafka.max_bytes.
//   - An event unknown to pkg/gmx stops the scanner: it cannot be routed, and skipping it would hide it.
//   - The price topic may repeat a report after a restart or a lost reply; readers know a report by token and time.
package scanner
