// Package ledger keeps the accounts of several keepers that execute the same jobs: who executed each first, how old it
// was by then, who came too late or too early, and what all of that cost (TIER-17, TIER-18). Its only
// input is the chain, block by block and in order, so that everybody comes to the same accounts.
//
// # What a job is here
//
// A job is an account that is opened by the request it executes (market orders, deposits, withdrawals, shifts: the
// chain names the moment since which they can be executed) or by the first transaction about it (liquidations and
// trigger orders: the chain does not say when their condition began to hold). A second success under the same key is
// another job: the frozen order that the frozen-order role executes, the position that was opened and liquidated again.
// A liquidated position that is opened again begins a new life at once, so that whoever comes then is not late for the
// old one. (A transaction for the old life that is mined after that counts as tried in vain, not as late: its calldata
// does not say which life it was for.)
//
// # Ages
//
// A request's age is counted from its own block. What executed a liquidation or a trigger order are price reports, and
// their age is a lower bound of the job's: it was due by them. Such ages are marked, and not mixed with the others.
//
// # Winners and losers
//
// The transaction that ended a job won it. Any other transaction that was called for the job lost: late when the job
// was over, which is what sharing is there to avoid, or early, when it came before. The chain does not keep why a
// transaction reverted; its place does for the books.
//
// A transaction that ends several jobs is paid for once, by the job it was called for, or else by the first. An update
// of the deleveraging state always succeeds, so that two keepers' updates are two jobs.
package ledger
