// Package price checks price reports and chooses those that fit one transaction. The services that publish them are
// read by pkg/price/source.
//
// A Report is a price of one token at one moment, with the bytes that prove it to the exchange's oracle. A Feed runs
// several sources side by side, checks their reports, and hands on those of one source per token; an arbiter per token
// decides which pass. A Board stores the reports of the last minutes and answers which to use.
//
// # Trust
//
// Each report passes the Gates of its source: it makes sense, is not stale, not from ahead of the chain's clock, and
// its spread is bounded. Where two sources give reports of a token, none passes unless another source confirms it: by a
// price that is near, received a short while ago, and of about that time or a later one. Until one does, the reports
// are withheld; then those that nobody has contradicted since are handed on as well, in order. While two contradict
// each other, nothing passes; of three, one is outvoted. A source that is alone is believed, but for jumps, which its
// next reports have to repeat. For the first Failover.After of a token, a source that has not given one yet is waited
// for. A report from ahead of the clock passes where another source is as far: then the clock is what is behind.
// Whatever does not pass is counted with its reason, and logged now and then. A price that is read on the chain is as
// old as what was written there, and is compared as of then: its report's time is that of the block it was read in,
// which is the time that the exchange's provider gives it.
//
// The first source that serves a token serves it alone, until it has given no report that passes for Failover.After, or
// none of about the time of what others give; then the next that lives takes over. It takes back its place once it has
// lived for Failover.ReturnAfter without a break. The reports of the others are compared all the time. A source that
// steps in with a report older than what was emitted emits nothing until it has a newer one.
//
// # Guaranteed
//
//   - A Feed emits no token's report twice, and none that is older than what it emitted before for the token, also
//     across sources.
//   - No report is dropped without a count. Reports for which emitting fails are emitted again, in the same order.
//   - What a Board answers depends on the reports it was given, not on the order in which they came. Of two reports of
//     one token and moment the first to come stays.
//   - A Board never answers by a report from before the second asked for, and never mixes reports further apart than
//     the exchange allows. Its memory is bounded by Window and maxReports.
//
// # Not guaranteed
//
//   - Data is opaque. Whether it proves the price is judged by the oracle alone, and so is whether the oracle takes the
//     provider of a source that stepped in: give every source of a token a provider that the exchange has enabled, or
//     use it for comparison and planning only.
//   - Sources that poll may miss reports between two polls. Keepers then see the same market through slightly different
//     reports.
//   - Two sources with the same wrong price are believed; so is one that is alone and is wrong by less than
//     Gates.MaxJump, or repeats its wrong price.
//   - While the source that serves contradicts two others, or falls behind them, the newest report is older than
//     theirs, until Failover.After has passed.
//   - The clock given by Feed.SetClock is not checked. Off by more than Gates.MaxAge it stops all prices, visibly.
package price
