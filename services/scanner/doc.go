// Package scanner copies the exchange's events to Kafka: in order, nothing left out, nothing twice in effect,
// reorgs included (PIPE-2).
//
// # What is on the log topic
//
// Every partition gets every block of the head: one atomic batch of the block's records that belong to the partition,
// closed by a BLOCK_END that counts and digests them. Within a block stand first the PARAMs, then the AUDITs, then the
// LOGs in the order of their index, then the TXs in the order of theirs. PARAMs, logs that set parameters, and those of
// events that this build does not understand go to every partition; an AUDIT to that of its market, every other LOG to
// that of its routing key, and TX to partition 0. Between batches stand, each alone, EPOCH, REORG, FINALIZED
// and HALT.
//
// A block or range whose records for a partition are larger than a batch may be (kafka.max_bytes) goes out in several
// batches, of which all but the last end in PART. Nothing of it counts before its BLOCK_END or RANGE_END.
//
// History, that is what is final and far below the head, goes out in ranges: one batch for each partition with the
// records of many blocks, one block after the other, closed by a RANGE_END. Ranges are read side by side, written in
// order, cut so that each is wholly new or wholly held for every partition, and end at or below the finalized block;
// from there on it is block by block.
//
// PARAMs are words of the DataStore that no event carries. The configured ones are read at the topic's first block and
// stand in it. All others are read by audits, at an earlier final block (adr 0011), and stand in the next new block of
// every partition. An AUDIT in a later one means that every word that rules read for a market was compared. A TX stands
// beside every transaction with one of our logs; its sender is who signed it. What left no log stands nowhere.
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
// So is a topic that was deleted and made anew beneath a writer: a batch that comes to stand below the one before, a
// sequence that is refused, or the end of the topic below what was read ends the epoch, and the topic is claimed anew
// under a higher one. What the writer before has written into it by then stands under no claim of that topic, and
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
// Nothing unproven is published (PIPE-13): either the header's bloom rules out any log of ours, or the block's receipts
// hash to the header's receipts root, and logs and TXs are taken from them; the block's hash was recomputed. The
// endpoint that had the block first is asked first, another one when it has not answered for as long as it mostly
// takes, or answers what proves nothing. While no endpoint serves receipts that do, the block is waited for, and all
// behind it: /readyz says for which and why, and scanner_unproven_block is its number.
//
// # Finality
//
// Final is what two endpoints of different hosts call final (evm.Client.Finalized); the maximum is the scanner's own. A
// chain that leaves a final block, as two hosts have it, halts the topic; while only one has, the scanner waits. With
// one host there is one word, which the log and /readyz say. HALT goes to every partition, and after it
// nothing but the EPOCHs of scanners that start. The operator lifts it by scanner.accept_reorg_to, which writes a REORG
// that readers let pass.
//
// # Not guaranteed
//
//   - Headers of history are linked to each other by recomputed hashes, up to the finalized block. Who sealed them is
//     not checked: a node alone could make up a chain.
//   - A reorg deeper than readers can undo (1000 blocks, and never into a range) stops the scanner before a REORG is
//     written, once two hosts, where there are two, have left the branch.
//   - Publishing waits where no endpoint serves a block's receipts, or a build does not know how to encode one of them.
//   - A single record that is larger than a batch may be stops publishing until the operator raises kafka.max_bytes.
//   - A log that names an order or position whose owner cannot be found, or that cannot be read, stops publishing: it
//     cannot be routed, and skipping it would hide it.
//   - The price topic may repeat a report after a restart or a lost reply; readers know a report by token and time.
package scanner
