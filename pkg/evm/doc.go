// Package evm is the JSON-RPC client: what a node is asked, what its answers mean, and how much of them is believed.
//
// A Client talks to one chain over several endpoints, HTTP or WebSocket. Each has a score, the time after which a good
// answer of it is to be expected: what an answer takes, how often there is none, and how far its head is behind. Reads
// go to the best endpoint, and to the next one as well when the answer is later than usual or none; the first usable
// answer wins. What is known to be had from one endpoint, because it announced the block, is asked of that one first.
// What history takes is shared out among all that are good, as each is fast. HTTP answers are read by this package
// itself, once; WebSockets are go-ethereum's client's.
// Signed transactions go to all endpoints at once, private ones to those alone that are configured for them.
//
// # Guaranteed
//
//   - No endpoint is used before it has named the configured chain, and again after every connection that broke. One
//     of another chain is never used; see WrongChain. A private endpoint alone may refuse to name its chain.
//   - A block's hash is recomputed from its header, also of announced heads; a block asked for by hash has that hash,
//     and one asked for by number has that number. Logs and receipts carry the hash of the block they were asked for,
//     in ascending order without gaps of the receipts' indexes. Headers of a range name each other as parents.
//   - Receipts that are called proven hash to the header's receipts root, so that logs, statuses, types and gas cannot
//     be incomplete or invented. A transaction that Verified returns comes to its hash and is from who signed it.
//   - A receipt that is asked for by itself is of the transaction that the block has there: for that alone all its
//     transactions are hashed; see Reader.Receipt.
//   - An endpoint that was caught in a lie (an answer no honest node gives), by a majority, or by Suspect, is not asked
//     for that purpose while another one was not caught, until a cool-down is over and it answers a probe. One that is
//     stale, slow, unreachable, has answered with errors of its own alone for seconds, lacks the method, or shows
//     bodies that this build cannot read comes last.
//   - Where endpoints are at two hosts or more, Finalized and the Settled reads of a Client return what two of them
//     agree on, and GasPrice and Tips what the one in the middle says. A head that is further ahead of what two hosts
//     bear out than time can have passed is not believed. See pkg/evm/agreement.
//   - Over HTTP an answer counts only under the id of its request; a refusal also under none.
//   - Every request has a deadline. No answer may be longer than a limit, also after it was unpacked. A node that wants
//     fewer requests gets fewer; signed transactions alone are never held back.
//   - What a node answers to a signed transaction is sorted into a Class by one table. What is not in it is Ambiguous:
//     cut connections, timeouts, HTTP errors, unknown texts. Redirects are not followed.
//   - No error, no log line and no status holds the secret parts of an endpoint's address.
//
// # Not guaranteed
//
//   - The transactions of a block are one node's word, until Verified is asked for one; that it stands at its place is
//     what body and receipts agree on. What was paid for gas is one node's word. The result of a call cannot be checked
//     at all.
//   - BSC's milliseconds are not covered by a block's hash. They are believed within the header's second.
//   - Headers are not checked against the validators' signatures: with less than three endpoints a node can make up a
//     branch that is not final yet, and nobody is there to contradict it. With three, the majority is believed, about
//     blocks some way below the head.
//   - Over HTTP an endpoint shows its chain at the start and after a failed request, not for every connection.
//   - Logs that a node leaves out of a block are not noticed here; the block's bloom and receipts tell.
//   - An error whose id is null has no addressee on a WebSocket: it is waited for until the deadline, and the request
//     then fails over.
package evm
