// Package price is price reports: which of them are trusted, and which of them fit one transaction. Where they come from is pkg/price/source.
//
// A Report is a price of one token at one moment, with the bytes that prove it to the exchange's oracle. A Feed runs several sources side by side,
// judges what they say, and hands on the reports of one source per token; a Board remembers what came and answers which reports to use.
//
// # Trust
//
// Each report passes the Gates of its source: it makes sense, is not stale, not from the future, and its spread is bounded. A price that jumps from
// the one before, or that deviates from what other sources say, is withheld until a second source agrees or enough reports in a row repeat it; then
// the withheld reports are handed on as well, in order. Whatever does not pass is counted with its reason, and logged now and then.
//
// The first source that serves a token serves it alone, until it has given no report that passes for Failover.After; then the next that lives takes
// over. It takes back its place once it has lived for Failover.ReturnAfter without a break. The others are heard all the time, as witnesses. A source
// that steps in with a report older than what was emitted is silent until it has a newer one.
//
// # Guaranteed
//
//   - A Feed emits no token's report twice, and none that is older than what it emitted before for the token, also across sources.
//   - No report is dropped without a count. Reports for which emitting fails are emitted again, in the same order.
//   - What a Board answers depends on the reports it was given, not on the order in which they came. Of two reports of one token and moment
//     the first to come stays.
//   - A Board never answers by a report from before the second asked for, and never mixes reports further apart than the exchange allows. Its memory
//     is bounded by Window and MaxReports.
//
// # Not guaranteed
//
//   - Data is opaque. Whether it proves the price is judged by the oracle alone, and so is whether the oracle takes the provider of a source that
//     stepped in: give every source of a token a provider that the exchange has enabled, or use it as a witness for planning only.
//   - Sources that poll may miss reports between two polls. Keepers then see the same market through slightly different reports.
//   - Staleness is measured by this machine's clock. A clock that is off by more than Gates.MaxAge stops all prices, visibly.
package price
