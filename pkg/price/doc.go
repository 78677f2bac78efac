// Package price is price reports: where they come from, how they are checked, and which of them fit one transaction.
//
// A Report is a price of one token at one moment, with the bytes that prove it to the exchange's oracle. A Feed asks a Source for reports and hands
// on each new one once; a Board remembers what came and answers which reports to use.
//
// # Guaranteed
//
//   - A Feed emits no token's report twice, and none that is older than what it emitted before for the token.
//   - A report with a price of zero, a minimum above its maximum, no token or no time is refused; the others of the same answer are not.
//   - What a Board answers depends on the reports it was given, not on the order in which they came. Of two reports of one token and moment
//     the first to come stays.
//   - A Board never answers by a report from before the second asked for, and never mixes reports further apart than the exchange allows.
//
// # Not guaranteed
//
//   - Data is opaque. Whether it proves the price is judged by the oracle alone.
//   - A Feed that polls may miss reports between two polls. Keepers then see the same market through slightly different reports.
//   - The wall clock judges nothing here; it only measures ages.
package price
