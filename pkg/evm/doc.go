// Package evm is JSON-RPC: what a node is asked, what its answers mean, and how much of them is believed.
//
// A Client talks to one chain over one or more endpoints, HTTP or WebSocket. Reads go to the endpoint that answered last and move on to the
// next one when it gives no answer; signed transactions go to all of them at once.
//
// # Guaranteed
//
//   - No endpoint is used before it has named the configured chain (and genesis block, if one is configured). One of another chain is never
//     used; see WrongChain.
//   - A block's hash is recomputed from its header, a block asked for by hash has that hash, and one asked for by number has that number.
//     Logs and receipts carry the hash of the block they were asked for, in ascending order without gaps of the receipts' indexes.
//   - Receipts that are called proven hash to the header's receipts root, so that their logs, status and gas cannot be incomplete or invented.
//   - What a node answers to a signed transaction is sorted into a Class by one table. Whatever is not in the table is Ambiguous: cut
//     connections, timeouts, HTTP errors, unknown texts.
//   - No error and no log line holds the secret parts of an endpoint's address.
//
// # Not guaranteed
//
//   - The sender of a transaction is what the node says; its signature is not recovered.
//   - BSC's milliseconds are not covered by a block's hash. They are believed within the header's second.
//   - An endpoint is asked for its chain once. One that changes its chain behind the same address is not noticed.
//   - eth_getLogs is used by block hash only. The ways in which providers limit ranges are therefore not known here.
package evm
